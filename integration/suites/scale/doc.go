// Package scale measures the memory and CPU usage of watcher and lifecycle in a large cluster:
// 5,000 nodes and 100,000 pods, and 20,000 and 400,000, with typical changes while no pod is pending. Each service is a
// separate process with its real cache. Its API server is implemented in this package, and
// lists, streams and changes objects like the real one; its leases, outbox, queues and blobs are
// in memory.
//
// It also measures the path of a lone pod, and plans of 100,000 pods.
//
// `go test ./suites/scale` runs a small cluster; JOIST_SCALE=full measures clusters of 500 to
// 20,000 nodes, on which the requests in the chart's README are based, and checks the limits.
package scale
