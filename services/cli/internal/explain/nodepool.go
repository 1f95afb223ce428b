package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// NodePoolExplanation explains what a NodePool launches and what limits it.
type NodePoolExplanation struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	NodePool   string    `json:"nodePool"`
	At         time.Time `json:"at"`
	Answer     string    `json:"answer"`
	// IsReady reports whether it launches nodes, and Reason why not.
	IsReady bool   `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Weight  int32  `json:"weight"`
	Nodes   int    `json:"nodes"`
	// PricePerHour is the sum of the prices that the NodeClaims record.
	PricePerHour float64 `json:"pricePerHour"`
	// Limits has each limited resource.
	Limits []Limit `json:"limits"`
	// Budgets are its budgets at that time, as in the JSON of joist budgets; nil if one cannot be read.
	Budgets *report.PoolBudgets `json:"budgets,omitempty"`
	// Disrupting counts the nodes that use the budgets.
	Disrupting int `json:"disrupting"`
	// Rejects are the pending pods that it rejects, by rule.
	Rejects []RejectedPods `json:"rejects"`
	// InstanceTypes are the types of the EC2NodeClass by the rule that removes them, for a pod without
	// requirements.
	InstanceTypes []TypeGroup   `json:"instanceTypes"`
	Reproduction  *Reproduction `json:"reproduction,omitempty"`
	Notes         []string      `json:"notes"`
}

// Limit is a limited resource.
type Limit struct {
	Resource corev1.ResourceName `json:"resource"`
	Used     resource.Quantity   `json:"used"`
	Limit    resource.Quantity   `json:"limit"`
	IsFull   bool                `json:"reached"`
}

// RejectedPods are the pods that a NodePool rejects by one rule.
type RejectedPods struct {
	Rule   string   `json:"rule"`
	Detail string   `json:"detail"`
	Pods   []string `json:"pods"`
}

// ExplainNodePool explains a NodePool. The decision is the last plan, whose snapshot may be older than s.
func (d *PlanDecision) ExplainNodePool(s *planning.Snapshot, name string) (NodePoolExplanation, error) {
	at := slices.IndexFunc(s.NodePools, func(np karpenter.NodePool) bool { return np.Name == name })
	if at < 0 {
		return NodePoolExplanation{}, fault.F("explaining the NodePool", fault.Missing, "NodePool %s not found", name).WithHint("give the name of a NodePool of the cluster%s", poolNames(s))
	}
	np := &s.NodePools[at]
	out := NodePoolExplanation{
		APIVersion: apiVersion, Kind: "NodePoolExplanation", NodePool: name, At: s.TakenAt.UTC(), Weight: np.Weight(),
		Limits: []Limit{}, Rejects: []RejectedPods{}, InstanceTypes: []TypeGroup{}, Notes: []string{}, Reproduction: d.Reproduction,
	}
	out.Reason = cmp.Or(planning.NotReadyReason(np), planning.ExplainLaunchPause(np, s))
	out.countNodes(s, np)
	out.addBudgets(s, np)
	d.addRejected(&out)
	d.addPoolTypes(&out, s)
	out.IsReady = out.Reason == ""
	out.Answer = out.answer()
	return out, nil
}

func poolNames(s *planning.Snapshot) string {
	text := ""
	var textSb86 strings.Builder
	for i := range s.NodePools {
		textSb86.WriteString(map[bool]string{true: ": ", false: ", "}[i == 0] + s.NodePools[i].Name)
	}
	text += textSb86.String()
	return text
}

// countNodes counts the nodes, their price and their use of the limits, as the planner does.
func (e *NodePoolExplanation) countNodes(s *planning.Snapshot, np *karpenter.NodePool) {
	used := corev1.ResourceList{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.NodePool != np.Name {
			continue
		}
		e.Nodes++
		e.PricePerHour += n.PricePerHour
		if n.IsBeingRemoved() && !planning.CountsNodesBeingRemoved(np) {
			continue
		}
		counted := n.CapacityInLimits()
		for name, amount := range counted {
			addQuantity(used, name, amount)
		}
		if _, isCounted := counted[karpenter.ResourceNodes]; !isCounted {
			addQuantity(used, karpenter.ResourceNodes, *resource.NewQuantity(1, resource.DecimalSI))
		}
	}
	for name, limit := range np.Spec.Limits {
		one := Limit{Resource: name, Used: used[name], Limit: limit}
		one.IsFull = one.Used.Cmp(limit) >= 0
		e.Limits = append(e.Limits, one)
	}
	slices.SortFunc(e.Limits, func(a, b Limit) int { return compareText(string(a.Resource), string(b.Resource)) })
}

func addQuantity(list corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	sum := list[name]
	sum.Add(amount)
	list[name] = sum
}

// addBudgets adds the budgets at the time of the snapshot, and the nodes that use them, which are counted
// as disruption counts them.
func (e *NodePoolExplanation) addBudgets(s *planning.Snapshot, np *karpenter.NodePool) {
	total := 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.NodePool != np.Name || n.Claim == "" || !n.Initialized && !n.Rebooting || n.Terminating {
			continue
		}
		total++
		if n.IsBeingRemoved() || n.Rebooting || !n.Ready {
			e.Disrupting++
		}
	}
	preview, err := budget.PreviewBudgets(np, total, s.TakenAt, s.TakenAt.Add(7*24*time.Hour))
	if err != nil {
		e.Notes = append(e.Notes, "no node may be disrupted: "+err.Error())
		return
	}
	found := report.NewPoolBudgets(np.Name, total, preview)
	found.Windows = found.Windows[:min(1, len(found.Windows))]
	e.Budgets = &found
}

// addRejected adds the pods of the last plan that the NodePool rejects.
func (d *PlanDecision) addRejected(e *NodePoolExplanation) {
	for _, u := range d.Plan.Unplaced {
		for _, r := range u.Rejections {
			if r.NodePool != e.NodePool && r.NodePool != "" {
				continue
			}
			i := slices.IndexFunc(e.Rejects, func(o RejectedPods) bool { return o.Rule == r.Rule && o.Detail == r.Detail })
			if i < 0 {
				i = len(e.Rejects)
				e.Rejects = append(e.Rejects, RejectedPods{Rule: r.Rule, Detail: r.Detail})
			}
			for _, pod := range u.Pods {
				e.Rejects[i].Pods = append(e.Rejects[i].Pods, u.Namespace+"/"+pod.Name)
			}
		}
	}
}

// addPoolTypes groups the instance types for a pod that requests nothing and tolerates every taint.
func (d *PlanDecision) addPoolTypes(e *NodePoolExplanation, s *planning.Snapshot) {
	pod := planning.PodClass{Spec: planning.PodSpec{
		Namespace: "default", Requests: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	batch := planning.Batch{Snapshot: *s}
	for _, p := range solver.ExplainPools(batch, d.Stock, pod) {
		if p.NodePool != e.NodePool {
			continue
		}
		e.InstanceTypes = d.groupPoolTypes(&p)
		if e.Reason == "" && p.Rejection.Rule != "" {
			e.Reason = p.Rejection.Detail
		}
	}
}

// answer returns the explanation in one sentence.
func (e *NodePoolExplanation) answer() string {
	text := fmt.Sprintf("NodePool %s has %s", e.NodePool, simulate.FormatCount(e.Nodes, "node"))
	if e.PricePerHour > 0 {
		text += fmt.Sprintf(" for $%.4f an hour", e.PricePerHour)
	}
	if !e.IsReady {
		return text + ", and launches no more: " + e.Reason
	}
	rejected := 0
	for _, r := range e.Rejects {
		rejected += len(r.Pods)
	}
	if rejected > 0 {
		return fmt.Sprintf("%s, and rejects %s", text, simulate.FormatCount(rejected, "pending pod"))
	}
	return text + ", and launches nodes for the pods that it accepts"
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
