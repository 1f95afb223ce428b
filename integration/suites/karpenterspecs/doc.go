// Package karpenterspecs runs Karpenter's own specs with Joist's planner in place of Karpenter's scheduler, on a real
// API server. The test copies Karpenter's module, replaces its scheduler's Solve with testdata/solve.go.txt, which asks
// package planner, and compiles and runs the tests of the listed packages.
//
// testdata/<suite>.yaml names each spec that fails, with the reason. Another failure fails the test, and so does a
// named spec that passes.
package karpenterspecs
