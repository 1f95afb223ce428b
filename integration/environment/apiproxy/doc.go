// Package apiproxy is a TLS proxy on loopback between a service and a Kubernetes API server, which answers some
// requests as an API server with problems does: late, with errors, with half an event, or with an error for a write that
// was stored.
//
// Every fault is one that a client can get from a real API server or from a load balancer in front of it. The proxy
// never answers that a write was stored if it was not, and never changes the content of an object. Which requests get a
// fault is drawn from a seed; the order of concurrent requests is not part of the seed.
package apiproxy
