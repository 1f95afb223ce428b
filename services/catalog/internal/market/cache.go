// Package market schedules the reading of a region's market and builds the parts of a
// catalogue from it. Each part (types, offerings, zones, prices, zonal shifts) has its own
// schedule and may fail separately.
//
// CachedParts is a stored document with the parts. A State records when and with which result
// each part was last read. It is stored separately, so reading an unchanged part writes no
// document. A part that cannot be read keeps its value, or the embedded catalogue replaces
// it, and a warning gives the reason.
//
// All functions are pure; the time is an argument.
package market

import (
	"errors"
	"reflect"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Kind is the folder of caches and of the state, which refers to the latest cache.
const Kind = "markets"

// Format is the version of the encoding of CachedParts. A cache of another format is discarded, and
// AWS is read again.
const Format = 1

// CachedParts has the parts of a region's market as they were last read.
type CachedParts struct {
	Format    int                          `json:"format"`
	Region    string                       `json:"region"`
	Types     Part[catalog.InstanceType]   `json:"types,omitzero"`
	Offerings Part[cloud.TypeOffering]     `json:"offerings,omitzero"`
	Zones     Part[cloud.AvailabilityZone] `json:"zones,omitzero"`
	OnDemand  Part[cloud.OnDemandPrice]    `json:"onDemand,omitzero"`
	Spot      Part[cloud.SpotPrice]        `json:"spot,omitzero"`
	Shifts    Part[cloud.ZonalShift]       `json:"shifts,omitzero"`
	Cluster   Part[cloud.ClusterInfo]      `json:"cluster,omitzero"`
}

// Part is one list, with the time of its last change.
type Part[T any] struct {
	Since time.Time `json:"since"`
	Items []T       `json:"items"`
}

// WithItems returns the part with the items; it returns p if the items are the same.
func (p Part[T]) WithItems(items []T, now time.Time) Part[T] {
	if !p.Since.IsZero() && (len(items)+len(p.Items) == 0 || reflect.DeepEqual(items, p.Items)) {
		return p
	}
	return Part[T]{Since: now.UTC(), Items: items}
}

// State has the results of the last reading of each part. It is stored under one key after
// each reading.
type State struct {
	Cache    event.Ref            `json:"cache"`
	Readings map[PartName]Reading `json:"readings"`
}

// Reading is the result of the last reading of one part.
type Reading struct {
	// At is the time of the last success; zero if there was none.
	At time.Time `json:"at,omitzero"`
	// Tried is the time of the last attempt.
	Tried time.Time `json:"tried,omitzero"`
	// Kind is the kind of its error; empty if it succeeded. Error and Hint are for warnings.
	Kind  fault.Kind `json:"kind,omitempty"`
	Error string     `json:"error,omitempty"`
	Hint  string     `json:"hint,omitempty"`
}

// WithOutcome returns the reading after an attempt at now with the error err.
func (r Reading) WithOutcome(now time.Time, err error) Reading {
	now = now.UTC()
	if err == nil {
		return Reading{At: now, Tried: now}
	}
	return Reading{At: r.At, Tried: now, Kind: fault.KindOf(err), Error: err.Error(), Hint: fault.FindHint(err)}
}

// JoinErrors returns the errors of all parts, or nil.
func (s State) JoinErrors() error {
	var all []error
	for _, e := range schedule {
		if r := s.Readings[e.PartName]; r.Kind != "" {
			all = append(all, fault.F(e.action, r.Kind, "%s", r.Error))
		}
	}
	return errors.Join(all...)
}
