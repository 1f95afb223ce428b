// Package readme finds the commands that our pages tell people to type, and says which
// of them could not work.
//
// A page is right on the day on which it is written. After that a target of make, a flag
// of joist, a key of the chart or a file is renamed, and nobody reads the page again
// until somebody new does. So each command is parsed as a shell does it, and held against
// what it names: the Makefile, the real command tree of joist, the chart's values, the
// keys that the CDK app reads, files, packages and tests. Nothing is run.
//
// Invariants: commands are what stands in blocks of sh and console, in indented blocks, and
// in code within a line that begins with one of the programs; a block without a
// language holds none; a program without a check is a finding, so that nobody adds one
// unchecked.
package readme
