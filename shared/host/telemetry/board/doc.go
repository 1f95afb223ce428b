// Package board generates dashboards and alarms from the metric catalogue: CloudWatch's
// for the functions, Grafana's and Prometheus' for clusters that scrape.
//
// A metric names its panel in the catalogue, a panel has its place here, and an alarm is
// a value. Everything else is a function of these and of a cluster's topology, so a
// dashboard cannot show a metric that no service emits.
//
// The invariants:
//
//   - The same catalogue and topology give the same bytes.
//   - Panels follow the order in which events pass through the services: pods are
//     pending, planned, launched, and join; interruptions arrive and nodes are drained;
//     then health, disruption and cost.
//   - Every alarm has a page in deploy/docs/runbooks, and a command to run first.
//
//go:generate go test . -update
package board
