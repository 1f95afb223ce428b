// Package market decides what to read of a region's market, remembers it, and
// makes the parts of a catalogue of it.
//
// The idea: each part (hardware, where it is sold, prices, shifts) is read on a
// schedule of its own and may fail on its own. What was read lies in a Book, a
// document under its digest; when and how the last reading of each part went
// lies in the State beside it, which is small, so that reading the same again
// writes no document. A part that cannot be read stays as it was, or is taken
// from the embedded catalogue, and a warning says which and why.
//
// Invariants: everything here is a function of its arguments, the time included;
// the same Book gives the same parts, whenever it was read again; no part is
// ever replaced by an answer that was not whole, or that was empty.
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

// Kind is the folder of books, and of the state that names the latest.
const Kind = "markets"

// Format changes when a Book can no longer be read as before. A book of another
// format is not read: AWS has it all.
const Format = 1

// Book is what the region was last read to sell.
type Book struct {
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

// Part is one list, and since when it has been the same.
type Part[T any] struct {
	Since time.Time `json:"since"`
	Items []T       `json:"items"`
}

// Next is the part after it was read again: the same part, if it is the same.
func (p Part[T]) Next(items []T, now time.Time) Part[T] {
	if !p.Since.IsZero() && (len(items)+len(p.Items) == 0 || reflect.DeepEqual(items, p.Items)) {
		return p
	}
	return Part[T]{Since: now.UTC(), Items: items}
}

// State says how the last reading of each part went. It is written at each
// reading, under one name.
type State struct {
	Book     event.Ref        `json:"book"`
	Readings map[Name]Reading `json:"readings"`
}

// Reading is how the last reading of one part went.
type Reading struct {
	// At is when it last succeeded; zero is never.
	At time.Time `json:"at,omitzero"`
	// Tried is when it was last tried.
	Tried time.Time `json:"tried,omitzero"`
	// Kind is why it failed then, empty where it did not; Error and Hint are for
	// people.
	Kind  fault.Kind `json:"kind,omitempty"`
	Error string     `json:"error,omitempty"`
	Hint  string     `json:"hint,omitempty"`
}

// After is the reading that comes after r, with its outcome.
func (r Reading) After(now time.Time, err error) Reading {
	now = now.UTC()
	if err == nil {
		return Reading{At: now, Tried: now}
	}
	return Reading{At: r.At, Tried: now, Kind: fault.KindOf(err), Error: err.Error(), Hint: fault.HintOf(err)}
}

// Failed joins why parts could not be read; nil where all could.
func (s State) Failed() error {
	var all []error
	for _, e := range schedule {
		if r := s.Readings[e.Name]; r.Kind != "" {
			all = append(all, fault.F(e.action, r.Kind, "%s", r.Error))
		}
	}
	return errors.Join(all...)
}
