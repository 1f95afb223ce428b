// Package host runs a service's handler: under Lambda, as a long-polling SQS worker, or called directly by the
// simulator and the demo.
//
// A handler is a function from a message to an error. DecideDisposition alone decides what happens to the message, by
// the kind of the error. The order is always: decode, apply effects, publish, then apply the disposition. A crash at
// any point repeats the message, and derived ids make the repetition harmless.
package host
