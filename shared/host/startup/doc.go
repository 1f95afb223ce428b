// Package startup creates the components that every service needs in addition to its own ports: settings, telemetry,
// documents, queues and the bus. Each main wires its service from them. Only mains import this package.
//
// A process may serve several clusters. Each then has its own role, telemetry and worker, and a message is handled by
// the worker of its queue. With its own credentials the process only reads queues and assumes roles, so that a broken
// role of one cluster stops only that cluster's messages.
//
// The package links neither Lambda's runtime nor a Kubernetes client nor EC2: mains pass these in.
package startup
