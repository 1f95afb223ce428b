package protocol

import (
	_ "embed" // for the tables
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A path of a model, as seen from one NodeClaim, is a list of views that follow each other. The tables have every pair of views
// that some step of a model has before and after it; the tests write them.
var (
	//go:embed launchpaths.md
	launchTable string
	//go:embed disruptionpaths.md
	disruptionTable string

	launchPaths, disruptionPaths = readPaths(launchTable), readPaths(disruptionTable)
)

// viewChange is a pair of views.
type viewChange struct{ before, after string }

const pathsHeader = "| before | after |\n|---|---|\n"

func readPaths(table string) map[viewChange]bool {
	out := map[viewChange]bool{}
	for line := range strings.Lines(strings.TrimPrefix(table, pathsHeader)) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 4 {
			out[viewChange{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])}] = true
		}
	}
	return out
}

// Paths are the pairs of views that the steps of models have before and after them, as texts.
type Paths map[viewChange]bool

// String returns the table of the pairs.
func (p Paths) String() string {
	var b strings.Builder
	b.WriteString(pathsHeader)
	for _, c := range slices.SortedFunc(maps.Keys(p), func(a, b viewChange) int {
		return strings.Compare(a.before+"|"+a.after, b.before+"|"+b.after)
	}) {
		fmt.Fprintf(&b, "| %s | %s |\n", c.before, c.after)
	}
	return b.String()
}

// LaunchView is what can be seen of the launch of a NodeClaim.
type LaunchView struct {
	// Exists and IsDeleting are whether the NodeClaim exists and is being deleted.
	Exists, IsDeleting bool
	// IsAdmitted is whether it is marked as admitted, and IsBound whether it has an instance.
	IsAdmitted, IsBound bool
	// IsLaunched is whether EC2 has launched its intent.
	IsLaunched bool
}

// String returns the view as in launchpaths.md.
func (v LaunchView) String() string {
	parts := []string{"no NodeClaim"}
	if v.Exists {
		parts[0] = "NodeClaim"
	}
	for _, p := range []struct {
		is   bool
		text string
	}{{v.IsDeleting, "deleting"}, {v.IsAdmitted, "admitted"}, {v.IsBound, "bound"}, {v.IsLaunched, "intent launched"}} {
		if p.is {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// AllowsLaunchStep reports whether a step of the launch model leads from one view to the other.
func AllowsLaunchStep(before, after LaunchView) bool {
	return before == after || launchPaths[viewChange{before.String(), after.String()}]
}

// exploreWith explores a model and adds to paths what its steps change for each of the claims; nil paths are not collected.
func exploreWith[S comparable, V interface {
	comparable
	fmt.Stringer
}](m Model[S], paths Paths, view func(s S, step Transition[S], c int) (before, after V),
) Exploration {
	changes := map[[2]V]bool{}
	result := exploreSteps(m, func(s S, step Transition[S]) {
		for c := 0; c < claimCount && paths != nil; c++ {
			if before, after := view(s, step, c); before != after {
				changes[[2]V{before, after}] = true
			}
		}
	})
	for c := range changes {
		paths[viewChange{c[0].String(), c[1].String()}] = true
	}
	return result
}

// Explore visits every state of the model with a planted bug, or with "", and adds to paths what its steps change.
func (m LaunchModel) Explore(bug string, paths Paths) Exploration {
	m.Bug = bug
	return exploreWith(m, paths, func(s launchState, step Transition[launchState], c int) (before, after LaunchView) {
		return m.view(s, c), m.view(step.Next, c)
	})
}

func (m LaunchModel) view(s launchState, c int) LaunchView {
	claim := s.Claims[c]
	v := LaunchView{IsLaunched: s.Tokens[m.IntentOf[c]] == tokenLaunched}
	if claim.Phase == claimPresent || claim.Phase == claimDeleting {
		v.Exists, v.IsDeleting, v.IsAdmitted, v.IsBound = true, claim.Phase == claimDeleting, claim.Admitted, claim.Bound != noInstance
	}
	return v
}

// Proposals of a NodeClaim.
const (
	ProposalNone ProposalStep = iota
	ProposalWritten
	// ProposalReboot is confirmed, and the node is to be rebooted.
	ProposalReboot
	// ProposalConfirmed has no replacement, ProposalWaits has one that was never initialized, and that of ProposalReady was.
	ProposalConfirmed
	ProposalWaits
	ProposalReady
)

// ProposalStep is how far the proposal of a NodeClaim has come.
type ProposalStep uint8

var proposalTexts = []string{"no proposal", "proposed", "confirmed for a reboot", "confirmed without replacement", "replacement waits", "replacement ready"}

// DisruptionView is what can be seen of the disruption of a NodeClaim. After it is being deleted nothing else counts.
type DisruptionView struct {
	Exists, IsDeleting bool
	// ForCommand is whether it was deleted just now by its command.
	ForCommand bool
	Proposal   ProposalStep
	// IsMarked is whether it has the condition DisruptionReason, and IsTainted whether its node has the taint.
	IsMarked, IsTainted bool
	// Reboot is how far a reboot has come, and IsRebootTainted whether the node has its taint.
	Reboot          RebootStep
	IsRebootTainted bool
}

// Steps of a reboot.
const (
	RebootNone RebootStep = iota
	RebootRequested
	RebootIssued
)

// RebootStep is how far the reboot of a NodeClaim's node has come.
type RebootStep uint8

var rebootTexts = []string{"", ", reboot requested", ", reboot issued"}

// String returns the view as in disruptionpaths.md.
func (v DisruptionView) String() string {
	switch {
	case !v.Exists:
		return "no NodeClaim"
	case v.ForCommand:
		return "deleting for its command"
	case v.IsDeleting:
		return "deleting"
	}
	text := proposalTexts[v.Proposal]
	if v.IsMarked {
		text += ", marked"
	}
	if v.IsTainted {
		text += ", tainted"
	}
	text += rebootTexts[v.Reboot]
	if v.IsRebootTainted {
		text += ", tainted for a reboot"
	}
	return text
}

// AllowsDisruptionStep reports whether a step of the model of disruptions leads from one view to the other.
func AllowsDisruptionStep(before, after DisruptionView) bool {
	return before == after || disruptionPaths[viewChange{before.String(), after.String()}]
}

// Explore visits every state of the model with a planted bug, or with "", and adds to paths what its steps change.
func (m DisruptionModel) Explore(bug string, paths Paths) Exploration {
	m.Bug = bug
	return exploreWith(m, paths, func(s sagaState, step Transition[sagaState], c int) (before, after DisruptionView) {
		before, after = m.view(s, c), m.view(step.Next, c)
		after.ForCommand = int(step.Action.What) == c && (step.Action.Kind == sagaActDelete || step.Action.Kind == sagaActLand && s.Flight.Kind == sagaActDelete+1)
		return before, after
	})
}

func (m DisruptionModel) view(s sagaState, c int) DisruptionView {
	claim := s.Claims[c]
	switch claim.Phase {
	case claimRemoved:
		return DisruptionView{}
	case claimDeleting:
		return DisruptionView{Exists: true, IsDeleting: true}
	}
	v := DisruptionView{Exists: true, IsMarked: claim.Marked, IsTainted: claim.IsTainted, Reboot: RebootStep(claim.Reboot.Step), IsRebootTainted: claim.Reboot.IsTainted}
	switch {
	case claim.Note == 0:
	case !claim.Confirmed:
		v.Proposal = ProposalWritten
	case m.Reboots:
		v.Proposal = ProposalReboot
	case !m.Replaces:
		v.Proposal = ProposalConfirmed
	case s.EverReady&(1<<(claim.Note-1)) == 0:
		v.Proposal = ProposalWaits
	default:
		v.Proposal = ProposalReady
	}
	return v
}
