// Package telemetry tells how the services do: one wide JSON line and a few
// metrics for each message handled, and one span that carries the story on.
//
// The invariants:
//
//   - Every metric is in Catalogue, which says what it means and how many values
//     each label can have. Nothing in a message decides about a new label value.
//   - A story is one trace: the trace's id is the correlation id of the message
//     that began it, so a log line and a trace find each other without a table.
//   - What no message tells, as a node that came or went, is a span of the story that it
//     belongs to (Span), whose memory may be lost with a process, and then is not told.
//   - Every metric is counted by just the services that its entry names, is drawn in a
//     panel, and is Prometheus' where it is scraped and CloudWatch's where the service is
//     a function: packages emf and board.
//   - A process that serves several clusters has a voice for each (For): lines, and series
//     here and in CloudWatch, say whose they are.
//   - Telling never fails the work: what cannot be told is dropped.
package telemetry
