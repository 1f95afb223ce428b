// Package scale measures what the watcher takes in a large cluster: its memory
// and its share of a core while 5,000 nodes and 100,000 pods do what they do when
// nobody needs a node. The watcher is a process of its own with its real cache,
// before an API server of this package that lists, streams and changes objects as
// the real one would; its leases, outbox, queues and blobs are in its memory.
//
// `go test ./suites/scale` plays a small cluster; JOIST_SCALE=full measures the large one
// and holds it to the limits.
package scale
