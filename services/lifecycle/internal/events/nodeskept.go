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
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// maxKept is how many nodes one report publishes Events about: two for each, which is half of
	// the event queue.
	maxKept = 1000
	// keptRetention is how long an Event about a node that is not disrupted is stored, so that
	// nodes without one come first. Kubernetes keeps Events as long.
	keptRetention = time.Hour
	// maxDetailBytes is the limit of the report's own text, in bytes.
	maxDetailBytes = 300
)

// Kept is a node that disruption does not remove, and why.
type Kept struct {
	Claim *karpenter.NodeClaim
	// Node is nil until one has registered.
	Node *corev1.Node
	// Rule is one of disruption's rules. Subject and Detail come from the report and are not
	// trusted.
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

// nextAllowed is when an Event about the object may follow. Karpenter allows another reason of
// DisruptionBlocked after 2 min, and no Unconsolidatable before its interval.
func (e keptEvent) nextAllowed(r Reason, text string) time.Time {
	if r == CandidateBlocked && text != e.text {
		return e.at.Add(RepeatAfter)
	}
	return e.at.Add(r.RepeatAfter)
}

// ReportKept returns the Events about nodes that are not disrupted, on the Node and its
// NodeClaim. Nodes whose last Event is oldest come first.
func (m *Publisher) ReportKept(report []Kept, now time.Time) []effect.Effect {
	if m.kept == nil {
		m.kept = map[keptKey]keptEvent{}
	}
	maps.DeleteFunc(m.kept, func(_ keptKey, e keptEvent) bool { return now.Sub(e.at) >= keptRetention })
	type pending struct {
		Kept
		keptKey
		Reason
		last keptEvent
		text string
	}
	var due []pending
	listed := map[keptKey]bool{} // A forged report may list a claim many times.
	for _, k := range report {
		r, text := k.eventText()
		key := keptKey{k.Claim.UID, r.Reason}
		last, known := m.kept[key]
		if text == "" || listed[key] || known && now.Before(last.nextAllowed(r, text)) {
			continue
		}
		listed[key] = true
		due = append(due, pending{k, key, r, last, text})
	}
	slices.SortStableFunc(due, func(a, b pending) int { return a.last.at.Compare(b.last.at) })
	var out []effect.Effect
	for _, p := range due[:min(len(due), maxKept)] {
		m.kept[p.keptKey] = keptEvent{p.text, now}
		if p.Node != nil {
			out = append(out, p.About(cluster.Nodes, p.Node, now, "%s", p.text))
		}
		out = append(out, p.About(cluster.NodeClaims, p.Claim, now, "%s", p.text))
	}
	return out
}

// eventText returns the Event of a rule, with Karpenter's text if Karpenter has the rule; no text
// if the rule has no Event or is unknown.
func (k Kept) eventText() (Reason, string) {
	if text, known := blockedTexts[k.Rule]; known {
		return CandidateBlocked, text(k)
	}
	text, known := unconsolidatableTexts[k.Rule]
	switch {
	case !known:
		return Reason{}, ""
	case k.Rule == unplaceable && k.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted):
		return CandidateBlocked, text(k)
	default:
		return Unconsolidatable, text(k)
	}
}

// unplaceable is the only rule whose Event depends on the attempted disruption: a node that cannot
// be replaced for drift is blocked.
const unplaceable = "pods-unplaceable"

// blockedTexts are the texts of the rules that block every disruption of a node, and of the rules
// that block drift.
var blockedTexts = map[string]func(Kept) string{
	"no-pool":           func(k Kept) string { return fmt.Sprintf("NodePool not found (NodePool=%s)", k.poolName()) },
	"nodepool-deleting": func(k Kept) string { return fmt.Sprintf("NodePool is being deleted (NodePool=%s)", k.poolName()) },
	"not-initialized": func(k Kept) string {
		if k.Node == nil {
			return "Nodeclaim does not have an associated node"
		}
		if !k.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered) {
			return "Node isn't initialized nor registered"
		}
		return "Node isn't initialized"
	},
	"deleting":              fixedText("Node is deleting or marked for deletion"),
	"rebooting":             fixedText("Node is rebooting"),
	"nominated":             fixedText("Node is nominated for a pending pod"),
	"do-not-disrupt":        fixedText(fmt.Sprintf("Disruption is blocked through the %q annotation", karpenter.DoNotDisruptAnnotationKey)),
	"pod-do-not-disrupt":    textWithSubject(fmt.Sprintf("Pod has %q annotation", karpenter.DoNotDisruptAnnotationKey), " (Pod=%s)"),
	"pod-disruption-budget": textWithSubject("Pdb prevents pod evictions", " (PodDisruptionBudget=[%s])"),
	// Karpenter: pkg/controllers/disruption/staticdrift.go.
	"do-not-repair":            fixedText(fmt.Sprintf("repair is blocked through the %q annotation", karpenter.DoNotRepairAnnotationKey)),
	"repair-standalone":        fixedText("repair requires a NodePool to construct and budget a safe replacement"),
	"repair-unbounded":         fixedText("repair requires a termination grace period to bypass blocking pods"),
	"repair-unplaceable":       textWithDetail("Not all pods would schedule"),
	"static-at-limit":          fixedText("static NodePool is at its node limit and cannot stage a replacement"),
	"static-reservations-full": fixedText("static NodePool's capacity reservations are full and cannot stage a replacement"),
	"no-replacement":           textWithDetail("NodePool cannot have a replacement for this node"),
	"canary":                   textWithDetail("Drift waits for the previous wave"),
	"drift-halted":             textWithDetail("Drift of the NodePool is halted"),
}

// unconsolidatableTexts are the texts of the rules that block consolidation.
var unconsolidatableTexts = map[string]func(Kept) string{
	unplaceable:              textWithDetail("Not all pods would schedule"),
	"consolidation-disabled": func(k Kept) string { return fmt.Sprintf("NodePool %q has consolidation disabled", k.poolName()) },
	"consolidation-policy": func(k Kept) string {
		return fmt.Sprintf("NodePool %q has consolidation policy WhenEmpty, but node is not empty", k.poolName())
	},
	"capacity-buffer": func(k Kept) string { return fmt.Sprintf("Node %q has buffer pods", k.Claim.Status.NodeName) },
	"price-unknown":   Kept.unpricedReason,
	"no-saving":       fixedText("Can't replace with a cheaper node"),
	"same-type":       fixedText("Can't replace with a cheaper node"),
	"more-nodes": func(k Kept) string {
		return "Can't remove without creating" + cmp.Or(k.formatSubject(" %s"), " several") + " candidates"
	},
	"min-values": textWithSubject("Filtering by price: minValues requirement is not met for label(s)", " (label(s)=[%s])"),
	"spot-to-spot": func(k Kept) string {
		if got := k.formatSubject(", got %s"); got != "" {
			return "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to consolidate" + got
		}
		return "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
	},
	"scheduler-placement": textWithDetail("Not all pods would schedule where kube-scheduler places them"),
	"balanced":            textWithDetail("Consolidation saves too little for the pods that it moves"),
	"min-saving":          textWithDetail("Consolidation saves less than the NodePool requires"),
	"payback":             textWithDetail("Consolidation pays back later than the NodePool requires"),
	"cool-down":           textWithDetail("Cool-down of the NodePool has not passed"),
	"evictions-per-hour":  textWithDetail("Consolidation would move more pods within an hour than the NodePool allows"),
	"policy-unreadable":   textWithDetail("Annotation of the NodePool cannot be read"),
}

func fixedText(text string) func(Kept) string { return func(Kept) string { return text } }

// textWithSubject appends the report's subject to the text.
func textWithSubject(text, format string) func(Kept) string {
	return func(k Kept) string { return text + k.formatSubject(format) }
}

// textWithDetail appends the report's own text.
func textWithDetail(text string) func(Kept) string {
	return func(k Kept) string { return text + k.detailSuffix() }
}

func (k Kept) poolName() string { return k.Claim.Labels[karpenter.NodePoolLabelKey] }

// unpricedReason returns why the node's price is unknown.
func (k Kept) unpricedReason() string {
	for _, label := range []string{karpenter.CapacityTypeLabelKey, corev1.LabelTopologyZone} {
		if k.Node != nil && k.Node.Labels[label] == "" {
			return fmt.Sprintf("Node does not have label %q", label)
		}
	}
	return fmt.Sprintf("Instance Type %q not found, or its price is not known", k.Claim.Labels[corev1.LabelInstanceTypeStable])
}

// subjectPattern matches valid subjects: an object with or without its namespace, a label or a
// number.
var subjectPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}(/[A-Za-z0-9._-]{1,253})?$`)

// formatSubject formats the subject; "" if the report's subject is invalid.
func (k Kept) formatSubject(format string) string {
	if !subjectPattern.MatchString(k.Subject) {
		return ""
	}
	return fmt.Sprintf(format, k.Subject)
}

// detailSuffix returns the report's own text after a colon, on one line and truncated.
func (k Kept) detailSuffix() string {
	text := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, k.Detail)
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + fault.Truncate(text, maxDetailBytes)
}
