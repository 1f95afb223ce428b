// Package board makes dashboards and alarms of the metric catalogue: CloudWatch's for
// what runs as functions, and Grafana's and Prometheus' for those who scrape.
//
// The idea: a metric says in the catalogue which panel draws it, a panel says here
// where it stands, and an alarm is a value. Everything else is a function of these and
// of the topology of a cluster, so that a picture cannot show what nothing emits.
//
// The invariants:
//
//   - The same catalogue and topology give the same bytes.
//   - Panels stand in the order of an event's story, left to right: pods wait, are
//     planned, launched, and join; notices come, and nodes are drained; then health,
//     then disruption, then cost.
//   - Every alarm has a page in deploy/docs/runbooks, and a command to run first.
package board
