// Package fuzz runs every fuzzer of the repository for a time, two at once.
//
// It finds the fuzzers in the modules' test files, so that a new one needs no entry. Go keeps the inputs that reach new
// code in its cache, outside the work tree, and continues from them. It writes an input that fails a fuzzer to
// testdata/fuzz next to the test, where every go test repeats it.
package fuzz
