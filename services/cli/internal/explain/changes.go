package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// PodChanges are the edits after which a NodePool would launch a node for a pod. All of them are needed.
type PodChanges struct {
	Edits []string `json:"edits"`
	// IsVerified reports that the pod was planned again with the edits, and Cheapest is the cheapest
	// offering of the resulting node.
	IsVerified bool           `json:"verified"`
	Cheapest   *OfferingPrice `json:"cheapest,omitempty"`
}

// editsMax is the maximum number of edits that are combined.
const editsMax = 5

// findChanges finds edits one after the other: each removes the rule that rejects the pod with the edits
// before it.
func (d *PlanDecision) findChanges(class planning.PodClass, p *solver.PoolExplanation) PodChanges {
	c := changer{decision: d, batch: d.Batch, class: class, pool: p.NodePool}
	c.batch.Snapshot.NodePools = slices.Clone(c.batch.Snapshot.NodePools)
	out := PodChanges{Edits: []string{}}
	for now := *p; len(out.Edits) < editsMax; {
		text, isEdited := c.applyEdit(&now)
		out.Edits = append(out.Edits, text)
		if !isEdited {
			return out
		}
		next, ok := solver.ExplainPool(c.batch, d.Stock, c.class, c.pool)
		if !ok {
			return out
		}
		if next.Rejection.Rule == "" {
			cheapest := newOffering(next.Node.Offerings[0])
			out.IsVerified, out.Cheapest = true, &cheapest
			return out
		}
		now = next
	}
	return out
}

// changer edits copies of the pod and the NodePool.
type changer struct {
	decision *PlanDecision
	batch    planning.Batch
	class    planning.PodClass
	pool     string
}

// applyEdit removes the rule that rejects the pod. It returns the edit in words, and false if no edit that
// can be planned removes the rule.
func (c *changer) applyEdit(p *solver.PoolExplanation) (text string, isEdited bool) {
	switch p.Rejection.Rule {
	case planning.RuleTaints:
		return c.tolerateTaint(p.Key)
	case planning.RuleRequirements, planning.RuleNoOffering:
		if p.Key != "" {
			return c.dropRequirement(p.Key)
		}
		return "allow other instance types, zones or capacity types in the NodePool, or wait until EC2 has capacity: " + p.Rejection.Detail, false
	case planning.RuleResources:
		return c.allowLarger(p)
	case planning.RuleLimits:
		np := c.editPool()
		np.Spec.Limits = nil
		np.Annotations = maps.Clone(np.Annotations)
		delete(np.Annotations, policy.PriceLimit)
		return "raise the limits of NodePool " + c.pool + ": " + p.Rejection.Detail, true
	case planning.RuleTopology:
		return c.dropTopology(p.Rejection.Detail)
	case planning.RuleAddresses:
		return "add subnets with free IP addresses to the EC2NodeClass of NodePool " + c.pool + ", or capacity to its placement group", false
	case planning.RuleBudget:
		return "nothing: the next batch continues with this pod", false
	case planning.RuleNotReady:
		return "make NodePool " + c.pool + " ready: " + p.Rejection.Detail, false
	default:
		return "change the pod: " + p.Rejection.Detail, false
	}
}

// editPool returns the copy of the NodePool.
func (c *changer) editPool() *karpenter.NodePool {
	i := slices.IndexFunc(c.batch.Snapshot.NodePools, func(np karpenter.NodePool) bool { return np.Name == c.pool })
	edited := c.batch.Snapshot.NodePools[i].DeepCopy()
	c.batch.Snapshot.NodePools[i] = *edited
	return &c.batch.Snapshot.NodePools[i]
}

func (c *changer) tolerateTaint(name string) (string, bool) {
	np := c.editPool()
	i := slices.IndexFunc(np.Spec.Template.Spec.Taints, func(t corev1.Taint) bool { return t.ToString() == name })
	if i < 0 {
		return "add a toleration for " + name + " to the pod", false
	}
	taint := np.Spec.Template.Spec.Taints[i]
	c.class.Spec.Tolerations = append(slices.Clone(c.class.Spec.Tolerations), corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect})
	return fmt.Sprintf("add a toleration for %s to the pod, or remove the taint from NodePool %s", name, c.pool), true
}

// dropRequirement removes the pod's requirement on a label, or the NodePool's if only a volume of the pod
// has it.
func (c *changer) dropRequirement(key string) (string, bool) {
	spec := &c.class.Spec
	var from []string
	if value, ok := findSelector(spec.NodeSelector, key); ok {
		from = append(from, fmt.Sprintf("%s=%s from the nodeSelector", key, value))
		spec.NodeSelector = maps.Clone(spec.NodeSelector)
		maps.DeleteFunc(spec.NodeSelector, func(name, _ string) bool { return karpenter.NormalizeLabel(name) == key })
	}
	if edited, isEdited := dropAffinityKey(spec.Affinity, key); isEdited {
		from = append(from, key+" from the required node affinity")
		spec.Affinity = edited
	}
	if len(from) > 0 {
		return fmt.Sprintf("remove %s of the pod, or allow its value in NodePool %s", strings.Join(from, " and "), c.pool), true
	}
	np := c.editPool()
	before := len(np.Spec.Template.Spec.Requirements)
	np.Spec.Template.Spec.Requirements = slices.DeleteFunc(np.Spec.Template.Spec.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return karpenter.NormalizeLabel(r.Key) == key
	})
	text := fmt.Sprintf("allow the value of %s that the pod's volumes need in the requirements of NodePool %s", key, c.pool)
	return text, len(np.Spec.Template.Spec.Requirements) < before
}

func findSelector(selector map[string]string, key string) (string, bool) {
	for name, value := range selector {
		if karpenter.NormalizeLabel(name) == key {
			return value, true
		}
	}
	return "", false
}

// dropAffinityKey returns the affinity without the expressions over a label.
func dropAffinityKey(a *corev1.Affinity, key string) (edited *corev1.Affinity, isEdited bool) {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return a, false
	}
	edited = a.DeepCopy()
	required := edited.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		before := len(term.MatchExpressions)
		term.MatchExpressions = slices.DeleteFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return karpenter.NormalizeLabel(r.Key) == key })
		isEdited = isEdited || len(term.MatchExpressions) < before
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			edited.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil // A term without expressions would match nothing.
			break
		}
	}
	return edited, isEdited
}

// allowLarger removes the requirement of the NodePool without which its cheapest node is large enough.
func (c *changer) allowLarger(p *solver.PoolExplanation) (string, bool) {
	var best *changer
	bestKey, bestPrice := "", 0.0
	for _, r := range c.editPool().Spec.Template.Spec.Requirements {
		tried := *c
		tried.batch.Snapshot.NodePools = slices.Clone(c.batch.Snapshot.NodePools)
		np := tried.editPool()
		np.Spec.Template.Spec.Requirements = slices.DeleteFunc(np.Spec.Template.Spec.Requirements, func(o karpenter.NodeSelectorRequirementWithMinValues) bool { return o.Key == r.Key })
		got, ok := solver.ExplainPool(tried.batch, c.decision.Stock, c.class, c.pool)
		if ok && got.Rejection.Rule == "" && (best == nil || got.Node.PricePerHour < bestPrice) {
			best, bestKey, bestPrice = &tried, r.Key, got.Node.PricePerHour
		}
	}
	less := "request less " + p.Key + ": " + strings.TrimPrefix(p.Rejection.Detail, p.Key+": ")
	if best == nil {
		return less, false
	}
	*c = *best
	return fmt.Sprintf("allow larger instance types in NodePool %s (requirement %s), or %s", c.pool, bestKey, less), true
}

// dropTopology removes the pod's rules over other pods.
func (c *changer) dropTopology(detail string) (string, bool) {
	spec := &c.class.Spec
	hadRules := len(spec.Spread) > 0
	spec.Spread = nil
	if spec.Affinity != nil {
		hadRules = hadRules || spec.Affinity.PodAffinity != nil || spec.Affinity.PodAntiAffinity != nil
		spec.Affinity = spec.Affinity.DeepCopy()
		spec.Affinity.PodAffinity, spec.Affinity.PodAntiAffinity = nil, nil
	}
	if !hadRules {
		return "change the rules of other pods: " + detail, false
	}
	return "relax the pod's topology spread, affinity or anti-affinity to other pods: " + detail, true
}
