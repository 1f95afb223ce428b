// Package trace follows one pod, node or message through all services, from their logs: the audit log of
// facts, the log lines of the services, and spans of an OpenTelemetry collector.
//
// A trace is identified by its correlation id, which every message of it carries; the trace of a span has
// the same id. The audit log has only facts, not the commands between the services, and no times of
// handling. What the given logs do not have is listed.
//
// Of an object that exists, a running cluster has the correlation id, in an annotation of its NodeClaim, and
// steps of its own: conditions and events.
package trace
