package events

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// mostKept is how many nodes one report publishes Events about: two for each, which is
	// half of what may wait to be published.
	mostKept = 1000
	// keptMemory is how long an Event about a node that stays is remembered, so that nodes
	// without one come first. Kubernetes keeps Events for as long.
	keptMemory = time.Hour
	// mostDetail is where a report's own words are cut, in bytes.
	mostDetail = 300
)

// Kept is a node that disruption leaves alone, and why.
type Kept struct {
	Claim *karpenter.NodeClaim
	// Node is nil while none has joined.
	Node *corev1.Node
	// Rule is one of disruption's. Subject and Detail come from the report, and may be
	// anything.
	Rule, Subject, Detail string
}

type keptKey struct {
	claim  types.UID
	reason string
}

type keptEvent struct {
	text string
	at   time.Time
}

// dueAt is when an Event about the object may follow. Karpenter allows another reason of
// DisruptionBlocked after 2 min, and none of Unconsolidatable before the same.
func (e keptEvent) dueAt(r Reason, text string) time.Time {
	if r == CandidateBlocked && text != e.text {
		return e.at.Add(RepeatAfter)
	}
	return e.at.Add(r.RepeatAfter)
}

// ReportKept are the Events about nodes that stay, on the Node and its NodeClaim. Nodes come
// first that had no Event for longest.
func (m *Publisher) ReportKept(report []Kept, now time.Time) []effect.Effect {
	if m.kept == nil {
		m.kept = map[keptKey]keptEvent{}
	}
	maps.DeleteFunc(m.kept, func(_ keptKey, e keptEvent) bool { return now.Sub(e.at) >= keptMemory })
	type pending struct {
		Kept
		keptKey
		Reason
		last keptEvent
		text string
	}
	var due []pending
	listed := map[keptKey]bool{} // A forged report may list a claim any number of times.
	for _, k := range report {
		r, text := k.words()
		key := keptKey{k.Claim.UID, r.Reason}
		last, known := m.kept[key]
		if text == "" || listed[key] || known && now.Before(last.dueAt(r, text)) {
			continue
		}
		listed[key] = true
		due = append(due, pending{k, key, r, last, text})
	}
	slices.SortStableFunc(due, func(a, b pending) int { return a.last.at.Compare(b.last.at) })
	var out []effect.Effect
	for _, p := range due[:min(len(due), mostKept)] {
		m.kept[p.keptKey] = keptEvent{p.text, now}
		if p.Node != nil {
			out = append(out, p.About(cluster.Nodes, p.Node, now, "%s", p.text))
		}
		out = append(out, p.About(cluster.NodeClaims, p.Claim, now, "%s", p.text))
	}
	return out
}

// words are the Event of the rule that keeps the node, in Karpenter's words where it has
// the rule; no text where the rule has no Event, or is not known.
func (k Kept) words() (Reason, string) {
	if text, known := blocked[k.Rule]; known {
		return CandidateBlocked, text(k)
	}
	text, known := unconsolidatable[k.Rule]
	switch {
	case !known:
		return Reason{}, ""
	case k.Rule == unplaceable && k.Claim.Status.Conditions.True(karpenter.ConditionTypeDrifted):
		return CandidateBlocked, text(k)
	default:
		return Unconsolidatable, text(k)
	}
}

// unplaceable is the one rule whose Event depends on what was tried: a node that cannot be
// replaced for its drift is blocked.
const unplaceable = "pods-unplaceable"

// blocked are the words of the rules that keep a node from every disruption, and of those
// that keep a drifted one.
var blocked = map[string]func(Kept) string{
	"no-pool": func(k Kept) string { return fmt.Sprintf("NodePool not found (NodePool=%s)", k.pool()) },
	"not-initialized": func(k Kept) string {
		if k.Node == nil {
			return "Nodeclaim does not have an associated node"
		}
		return "Node isn't initialized"
	},
	"going":                 plain("Node is deleting or marked for deletion"),
	"nominated":             plain("Node is nominated for a pending pod"),
	"do-not-disrupt":        plain(fmt.Sprintf("Disruption is blocked through the %q annotation", karpenter.DoNotDisruptAnnotationKey)),
	"pod-do-not-disrupt":    named(fmt.Sprintf("Pod has %q annotation", karpenter.DoNotDisruptAnnotationKey), " (Pod=%s)"),
	"pod-disruption-budget": named("Pdb prevents pod evictions", " (PodDisruptionBudget=[%s])"),
	"no-replacement":        detailed("NodePool can have no other node in place of this one"),
	"canary":                detailed("Drift waits for the wave before"),
	"drift-halted":          detailed("Drift of the NodePool is halted"),
}

// unconsolidatable are the words of the rules that keep a node from consolidation.
var unconsolidatable = map[string]func(Kept) string{
	unplaceable: detailed("Not all pods would schedule"),
	"never":     func(k Kept) string { return fmt.Sprintf("NodePool %q has consolidation disabled", k.pool()) },
	"policy": func(k Kept) string {
		return fmt.Sprintf("NodePool %q has consolidation policy WhenEmpty, but node is not empty", k.pool())
	},
	"capacity-buffer": func(k Kept) string { return fmt.Sprintf("Node %q has buffer pods", k.Claim.Status.NodeName) },
	"price-unknown":   Kept.unpriced,
	"no-saving":       plain("Can't replace with a cheaper node"),
	"same-type":       plain("Can't replace with a cheaper node"),
	"more-nodes": func(k Kept) string {
		return "Can't remove without creating" + cmp.Or(k.naming(" %s"), " several") + " candidates"
	},
	"min-values": named("Filtering by price: minValues requirement is not met for label(s)", " (label(s)=[%s])"),
	"spot-to-spot": func(k Kept) string {
		if got := k.naming(", got %s"); got != "" {
			return "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to consolidate" + got
		}
		return "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
	},
	"would-not-land":     detailed("Not all pods would schedule where kube-scheduler places them"),
	"balanced":           detailed("Consolidation saves too little for the pods that it moves"),
	"min-saving":         detailed("Consolidation saves less than the NodePool asks for"),
	"payback":            detailed("Consolidation pays back later than the NodePool asks for"),
	"cool-down":          detailed("Cool-down of the NodePool has not passed"),
	"evictions-per-hour": detailed("Consolidation would move more pods within an hour than the NodePool allows"),
	"policy-unreadable":  detailed("Annotation of the NodePool cannot be read"),
}

func plain(text string) func(Kept) string { return func(Kept) string { return text } }

// named are words behind which stands what the rule names.
func named(text, format string) func(Kept) string {
	return func(k Kept) string { return text + k.naming(format) }
}

// detailed are words behind which stand the report's own.
func detailed(text string) func(Kept) string {
	return func(k Kept) string { return text + k.detail() }
}

func (k Kept) pool() string { return k.Claim.Labels[karpenter.NodePoolLabelKey] }

// unpriced says what keeps the node's price from being known.
func (k Kept) unpriced() string {
	for _, label := range []string{karpenter.CapacityTypeLabelKey, corev1.LabelTopologyZone} {
		if k.Node != nil && k.Node.Labels[label] == "" {
			return fmt.Sprintf("Node does not have label %q", label)
		}
	}
	return fmt.Sprintf("Instance Type %q not found, or its price is not known", k.Claim.Labels[corev1.LabelInstanceTypeStable])
}

// subject is what a report may name: an object with or without its namespace, a label or
// a number.
var subject = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}(/[A-Za-z0-9._-]{1,253})?$`)

// naming puts what the rule names into a format; nothing where the report names nothing
// that could be meant.
func (k Kept) naming(format string) string {
	if !subject.MatchString(k.Subject) {
		return ""
	}
	return fmt.Sprintf(format, k.Subject)
}

// detail are the report's own words behind a colon, on one line and cut.
func (k Kept) detail() string {
	text := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, k.Detail)
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "…"
	}
	return ": " + text
}
