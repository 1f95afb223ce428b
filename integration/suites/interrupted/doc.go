// Package interrupted measures the processing of interruption events: Joist's service
// with its host, and Karpenter's own controller with its real Reconcile, on the same
// messages in the same process.
//
// Both read the same model of SQS. The Scene sets the latency of a call to it, and of a
// call to an API (EC2 and the bus for Joist, the API server's writes for Karpenter, whose
// reads come from an informer's cache). Each runs as it is deployed: Joist with its
// binary's options, log lines and metrics, Karpenter as a singleton with
// controller-runtime's rate limiter after an error; its logger is off, as in its own
// benchmark.
//
// The mix is that of Karpenter's benchmark: a third scheduled changes, a third spot
// warnings, a third state changes, each of another instance.
package interrupted
