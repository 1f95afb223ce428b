// Package dynamicresources has the names of Karpenter's package of the same name, and Joist's
// allocator of devices behind them, so that Karpenter's specs of its allocator run against Joist.
//
// The test reads the specs from the module cache, replaces their import, and runs them. The specs of
// Karpenter's provisioning, consolidation and initialization with devices need its controllers: testdata
// names for each of them the test of Joist that shows it, and the test fails if either side has another
// one.
package dynamicresources
