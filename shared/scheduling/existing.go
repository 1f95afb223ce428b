package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// existing is a node that is there, or a claim that will become one, with the
// room that is left on it.
type existing struct {
	node   *Node
	labels map[string]string
	// open are a claim's requirements while nothing of it is launched.
	open   Requirements
	taints []corev1.Taint
	room   amounts
	groups []group
	ports  []HostPort
}

// newExisting lists the nodes that may take pods, initialized ones first (B089).
func newExisting(s Snapshot, a axis, daemons []*demand) []*existing {
	var out []*existing
	for i := range s.Nodes {
		if node := &s.Nodes[i]; !node.Going {
			out = append(out, settle(node, s, a, daemons))
		}
	}
	slices.SortStableFunc(out, func(x, y *existing) int {
		if x.node.Initialized != y.node.Initialized {
			if x.node.Initialized {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.node.Name, y.node.Name)
	})
	return out
}

// settle works out what a node still has to give. Daemons that will come but
// have not come yet are kept room for.
func settle(node *Node, s Snapshot, a axis, daemons []*demand) *existing {
	e := &existing{node: node, taints: node.Taints, labels: map[string]string{}, ports: node.HostPorts}
	for key, value := range node.Labels {
		e.labels[karpenter.NormalizeLabel(key)] = value
	}
	if node.Claim != "" && !node.Initialized {
		e.taints = lasting(node.Taints, startupTaints(node.NodePool, s))
	}
	if node.Claim != "" && !node.Launched {
		e.open = FromClaim(node.Requirements).Intersect(FromLabels(e.labels))
	}
	expected := make(amounts, len(a.names))
	for _, d := range daemons {
		if _, kept := untolerated(e.taints, d.spec.Tolerations, true); !kept && e.attracts(d) {
			expected = expected.plus(d.requests)
		}
	}
	coming := expected.minus(a.of(node.Daemons)).most(make(amounts, len(a.names)))
	e.room = a.of(node.Allocatable).minus(a.of(node.Used)).minus(coming)
	for _, class := range node.Pods {
		rules, _ := newRules(class.Spec) // What Kubernetes cannot read it does not obey either.
		e.groups = append(e.groups, group{spec: class.Spec, rules: rules, count: len(class.Pods)})
	}
	return e
}

// attracts reports whether a daemon is going to run on the node. For an open
// claim it is enough that it could: that is how the claim was planned.
func (e *existing) attracts(d *demand) bool {
	if e.open != nil {
		return d.suits(e.open)
	}
	return slices.ContainsFunc(d.levels[len(d.levels)-1].anyOf, e.satisfies)
}

func startupTaints(pool string, s Snapshot) []corev1.Taint {
	for i := range s.NodePools {
		if s.NodePools[i].Name == pool {
			return s.NodePools[i].Spec.Template.Spec.StartupTaints
		}
	}
	return nil
}

// satisfies reports whether the node is what want asks for. Labels of a node are
// facts: one that is missing is absent, well known or not. What is open in a
// claim must be good whichever way it falls.
func (e *existing) satisfies(want Requirements) bool {
	if e.open != nil {
		return e.open.Guaranteed(want)
	}
	for key, values := range want {
		value, ok := e.labels[key]
		if ok && !values.Has(value) || !ok && !values.HasAbsent() {
			return false
		}
	}
	return true
}

// suitable is the part of the test that does not change as pods are added.
func (e *existing) suitable(d *demand, l level) bool {
	_, kept := untolerated(e.taints, d.spec.Tolerations, l.relaxed)
	return !kept && slices.ContainsFunc(l.anyOf, e.satisfies)
}

// take puts one more pod of d on the node, if there is room beside the others.
func (e *existing) take(d *demand) bool {
	if clash(e.ports, d.ports) || !d.requests.fits(e.room) || !d.admits(e.groups) {
		return false
	}
	e.room = e.room.minus(d.requests)
	e.groups = join(e.groups, d)
	e.ports = append(slices.Clip(e.ports), d.ports...)
	return true
}

// nominate expects the pod on the node.
func (e *existing) nominate(pod PlacedPod) Nomination {
	n := Nomination{Namespace: pod.Namespace, Pod: pod.Pod, Claim: e.node.Claim}
	if e.node.Claim == "" || e.node.Registered {
		n.Node = e.node.Name
	}
	return n
}
