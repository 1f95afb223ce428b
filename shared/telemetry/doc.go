// Package telemetry tells how the services do: one wide JSON line and a few
// metrics for each message handled, and one span that carries the story on.
//
// The invariants:
//
//   - Every metric is in Catalogue, which says what it means and how many values
//     each label can have. Nothing in a message decides about a new label value.
//   - A story is one trace: the trace's id is the correlation id of the message
//     that began it, so a log line and a trace find each other without a table.
//   - Telling never fails the work: what cannot be told is dropped.
package telemetry
