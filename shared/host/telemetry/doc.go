// Package telemetry reports how the services work: one wide JSON log line, a few metrics and one span for each
// message.
//
// The invariants:
//
//   - Every metric is in the catalogue of package metric. The content of messages never
//     creates new label values.
//   - A trace id is the correlation id of the message that began the work, so log lines
//     and traces have a common key.
//   - A trace begins before its first message: with pending pods, with an event from AWS,
//     or with the snapshot for which a disruption was decided. The id of that span is derived from the message's id (event.Root), so a repeated
//     message gives the same span, also after a restart.
//   - Events from AWS about an instance and its termination are one trace, in any
//     service, because its id is derived from the instance's id.
//   - The service that begins a trace decides whether it is sampled (SamplesTrace), and puts
//     that into the traceparent of the message. Parent-based samplers follow it in all services.
//   - A change without a message, such as a node that joined, is a span of the trace to
//     which it belongs (RecordSpan). The NodeClaim stores that trace for the next leader.
//   - Work for several traces at once is a span of its own, with a link to each of them
//     (TraceBatch). A trace that others caused is linked to those. A span has at most 128
//     links; it reports the number of further ones to the collector.
//   - Prometheus scrapes each metric, and CloudWatch gets it from functions and from
//     services configured to send it: packages emf and board.
//   - A process that serves several clusters has a Telemetry for each (ForCluster), so log
//     lines and series name their cluster.
//   - Telemetry never fails the work: lines and values that cannot be written are dropped.
package telemetry
