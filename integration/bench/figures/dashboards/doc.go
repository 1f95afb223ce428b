// Package dashboards draws the dashboards of deploy with demo data, so that a reader sees
// them before there is a cluster.
//
// The idea: what is drawn is read from the dashboards' own JSON, so that a picture shows
// the panels that people get; only the values are made up, by a seeded generator that
// plays six hours in which four hundred pods arrive, spot instances are taken, and the
// pods go again. The invariant: the same dashboard gives the same bytes.
package dashboards
