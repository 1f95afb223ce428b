// Package fleet is nodes that commands are played on: those of a scenario, or those
// that a snapshot of a cluster shows.
//
// What is under way in a cluster is taken to be done when it is played on: nodes that
// go are gone, pods that wait are where they are planned, and nobody waits for
// anything any more. What was found on the way is told as notes.
package fleet

import (
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Fleet is nodes that exist. Prices are in US dollars an hour.
type Fleet interface {
	// Title is how results call it.
	Title() string
	// Notes say what was taken to be so.
	Notes() []string
	// Show is the fleet as disruption sees it. What it gives is not to be changed.
	Show() (scheduling.Snapshot, scheduling.Stock)
	// CarryOut does what steps say, one after the other: each counts on those before it,
	// and their answers are of what was shown last. Method, candidates and effort are
	// for the caller to add.
	CarryOut(steps []Step) []scenario.Round
	Size() int
	CostPerHour() float64
	// FinalNodes are all nodes with their pods, daemons left out.
	FinalNodes() []scenario.FinalNode
}

// Step is one command: nodes go, and their pods are where the result puts them.
type Step struct {
	// Nodes are places in the snapshot that was shown.
	Nodes  []int
	Result scheduling.Result
}

// OfScenario is the nodes of a scenario, which is used up by it.
func OfScenario(s *scenario.Scenario) Fleet { return played{s} }

type played struct{ *scenario.Scenario }

func (p played) Title() string   { return p.Name }
func (p played) Notes() []string { return p.Scenario.Notes }
func (p played) Size() int       { return len(p.Nodes) }

func (p played) Show() (scheduling.Snapshot, scheduling.Stock) { return p.Fleet() }

func (p played) CarryOut(steps []Step) []scenario.Round {
	var names []string
	for i := range p.Nodes {
		names = append(names, p.Nodes[i].Name)
	}
	var out []scenario.Round
	for _, step := range steps {
		var removed []string
		for _, i := range step.Nodes {
			removed = append(removed, names[i])
		}
		out = append(out, p.Scenario.CarryOut(removed, step.Result))
	}
	return out
}
