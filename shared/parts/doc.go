// Package parts opens what every service needs beside its own ports: settings,
// telemetry, documents, queues and the bus. A main wires a service out of them in
// a straight line, and nothing else imports this package.
//
// It links neither Lambda's runtime nor a Kubernetes client nor EC2: a main that
// wants one of them passes it in.
package parts
