// Package scale measures the watcher's memory and CPU usage in a large cluster: 5,000
// nodes and 100,000 pods with typical changes while no pod is pending. The watcher is a
// separate process with its real cache. Its API server is implemented in this package,
// and lists, streams and changes objects like the real one; its leases, outbox, queues
// and blobs are in memory.
//
// `go test ./suites/scale` runs a small cluster; JOIST_SCALE=full measures the large one
// and checks the limits.
package scale
