// Package dashboards draws the dashboards in deploy with demo data, so that readers see
// them without a cluster.
//
// It reads the dashboards' JSON, so a picture shows the real panels; only the values are
// invented, by a seeded generator that simulates six hours in which four hundred pods
// arrive, spot instances are interrupted, and the pods are deleted. Invariant: the same
// dashboard gives the same bytes.
package dashboards
