// Package interrupted measures how interruption events are dealt with: Joist's
// service behind its host, and Karpenter's own controller, its real Reconcile, on
// the same messages in the same process.
//
// Both read the same model of SQS. A call to it, and one to an API behind it (EC2
// and the bus for Joist, the API server's writes for Karpenter, whose reads come
// from an informer's cache), take what the Scene says. Each runs as it is deployed:
// Joist with the options, the log lines and the metrics of its binary, Karpenter
// as its singleton is driven, with controller-runtime's rate limiter after an
// error; its logger is off, as in its own benchmark.
//
// The mix is that of Karpenter's benchmark: a third scheduled changes, a third
// spot warnings, a third state changes, each of an instance of its own.
package interrupted
