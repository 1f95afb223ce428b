// Package embedded is the whole of Joist in one process: every service as the
// function that it is, over the models of Kubernetes, EC2, SQS, EventBridge and
// S3, in virtual time. The demo runs it, and so does the simulator, which puts a
// Tap on every call to crash, delay and interleave the actors.
//
// The invariants: nothing here knows the wall clock; a seed and the same calls
// give the same world; and no actor shares memory with another, for each has
// its own cache and all else goes through the models.
package embedded
