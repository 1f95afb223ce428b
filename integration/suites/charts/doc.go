// Package charts tests the charts of deploy/charts with Helm: they read or report every value
// of Karpenter's charts, every value is documented and bounded, pods have the environment
// variables that the services read, pods meet the restricted Pod Security Standard, and an
// API server accepts the rendered objects. The flag -update rewrites the golden files.
//
//go:generate go test . -run ^(TestCopies|TestKeys|TestTables)$ -update
package charts
