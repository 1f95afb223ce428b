// Package readme finds the commands on documentation pages, and reports the commands that cannot
// work.
//
// Pages become outdated when a make target, a flag of joist, a value of the chart or a
// file is renamed. So each command is parsed as a shell does, and checked against what it
// names: the Makefile, joist's real command tree, the chart's values, the context keys of
// the CDK app, files, packages and tests. No command is run.
//
// Invariants: commands are in blocks of sh and console, in indented blocks, and in inline
// code that begins with one of the programs; a block without a language has none; and a
// program without a check is a finding.
package readme
