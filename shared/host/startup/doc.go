// Package startup opens what every service needs beside its own ports: settings,
// telemetry, documents, queues and the bus. A main wires a service out of them in
// a straight line, and nothing else imports this package.
//
// A process may serve several clusters: then it has parts for each, with the cluster's own
// role, voice and worker, and a message is handled by those of the queue that it lay in.
// The process itself only works on queues and takes roles, so that one cluster's role
// that is broken stops that cluster's messages alone.
//
// It links neither Lambda's runtime nor a Kubernetes client nor EC2: a main that
// wants one of them passes it in.
package startup
