// Package lifecyclepass takes the place of Karpenter's controllers in Karpenter's specs: a call of a controller's
// Reconcile runs Joist's lifecycle service on the API server of the specs, with the clock, the cloud provider and the
// event recorder of the specs.
//
// One pass ends when a reconcile writes nothing. Launches are answered within the pass, as Karpenter's Create is.
// Terminated instances are reported at the start of the next pass.
package lifecyclepass
