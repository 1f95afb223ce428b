// Package telemetry tells how the services do: one wide JSON line and a few
// metrics for each message handled, and one span that carries the story on.
//
// The invariants:
//
//   - Every metric is in Catalogue, which says what it means and how many values
//     each label can have. Nothing in a message decides about a new label value.
//   - A story is one trace: the trace's id is the correlation id of the message
//     that began it, so a log line and a trace find each other without a table.
//   - A story begins before its first message: with pods that wait, or when AWS says what
//     it is about to take. That span's id is derived from the message's (event.Root), so
//     the same thing said twice is the same span, and who comes after a restart knows it.
//   - Notices about an instance and its end are one story, whoever hears of them, for its
//     id is derived from the instance's.
//   - What no message tells, as a node that came or went, is a span of the story that it
//     belongs to (Span). Which one that is stands on the NodeClaim, for the next leader.
//   - What is done for several stories at once is a span of its own, linked to each of
//     them (Batch), and a story that began because of others is linked to those. A span
//     has 128 links at most; of further ones the collector is told how many there were.
//   - Every metric is counted by just the services that its entry names, is drawn in a
//     panel, and is Prometheus' where it is scraped and CloudWatch's where the service is
//     a function or was told where to send them: packages emf and board.
//   - A process that serves several clusters has a voice for each (For): lines, and series
//     here and in CloudWatch, say whose they are.
//   - Telling never fails the work: what cannot be told is dropped.
package telemetry
