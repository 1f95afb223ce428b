// Package host runs a service's handler: under Lambda, as a long-polling SQS
// worker, or called directly by the simulator and the demo.
//
// A handler is a function from a message to an error. What becomes of the
// message is decided here and nowhere else, by one table (Judge) over the kind
// of the error. The order is always: decode, effect, publish, then the verdict;
// so a crash anywhere repeats the message, and ids that are derived make the
// repetition harmless.
package host
