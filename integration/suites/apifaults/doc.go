// Package apifaults runs Joist's binaries with a proxy between the services in the cluster and a real Kubernetes API
// server (package apiproxy). The proxy delays requests, cuts watches in the middle of an event, and answers with 409,
// 410, 429, 500, 503, with no answer, or with an error for a write that was stored. The API server and the services
// restart in between. The fake AWS shows changes late, loses answers, throttles, duplicates, delays and reorders messages,
// and has bursts of errors.
//
// While nodes are launched and interrupted, and again while they are removed, the faults happen. Then they end, and
// the test requires within stated times: every pod runs on its own node, each NodeClaim has one instance, only
// interrupted nodes were drained, the watcher's snapshot equals one of the API server's objects, the Leases moved only
// after they had expired, nothing remains after the removal, and no process exited.
//
// The faults are drawn from a seed, which is printed. JOIST_SEED repeats it, and JOIST_API_ROUNDS is the number of rounds.
package apifaults
