package consolidation

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// validatesAfter is how long Karpenter waits before it simulates a command again (pkg/controllers/disruption/consolidation.go).
const validatesAfter = 15 * time.Second

// upstream lets Karpenter's scheduler and consolidation decide in the model. It has one command at a time, as Karpenter's
// controller while it validates one.
type upstream struct {
	*traceDay
	types []planvalidator.InstanceType
	// found is the command that is validated at due.
	found *karpenterbaseline.Round
	due   time.Time
}

func newUpstream(d *traceDay) consolidator {
	u := &upstream{traceDay: d}
	for _, t := range planningtest.NewCatalogue().Types {
		sold, offered := d.types[t.Name]
		if !offered {
			continue
		}
		capacity, overhead, _ := catalog.NodeResources(t, catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
		one := planvalidator.InstanceType{Name: t.Name, Arch: t.Arch, OS: []string{catalog.Linux}, Capacity: capacity, Overhead: overhead, Labels: catalog.TypeLabels(t)}
		for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable} {
			delete(one.Labels, key) // They follow from other fields.
		}
		one.Labels[corev1.LabelTopologyRegion] = planningtest.Region
		for _, o := range sold.Offerings {
			one.Offerings = append(one.Offerings, planvalidator.Offering{Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType, Price: o.PricePerHour, Available: true})
		}
		u.types = append(u.types, one)
	}
	d.planUpstream = u.planPods
	return u
}

// planPods launches nodes for the pods that wait.
func (u *upstream) planPods() {
	r, err := karpenterbaseline.Plan(u.Context(), u.scenario(0, nil), karpenterbaseline.Options{Concurrency: 1})
	if err != nil || len(r.Unscheduled) > 0 {
		u.Fatal(err, r)
	}
	for _, n := range r.NewNodes {
		h := u.launchNode(n)
		h.node.ExpectedPods = n.Pods
		u.recordCause(h)
	}
	for _, h := range u.hosts {
		if pods := r.ExistingPods[h.node.Name]; len(pods) > 0 {
			u.nominate(h.node.Name)
			if !h.node.Initialized {
				h.node.ExpectedPods = append(h.node.ExpectedPods, pods...)
			}
		}
	}
}

// step finds a command, waits, and carries it out if it is still what Karpenter would do with its nodes.
func (u *upstream) step(evaluates bool) {
	switch {
	case u.found != nil && !u.now.Before(u.due):
		again := u.decide(u.found.Removed)
		if again != nil && len(again.Removed) == len(u.found.Removed) && len(again.Replacements) <= len(u.found.Replacements) {
			u.carryOut(again)
		}
		u.found = nil
	case u.found == nil && evaluates && len(u.commands) == 0:
		u.found, u.due = u.decide(nil), u.now.Add(validatesAfter)
	}
}

// decide returns Karpenter's command for some nodes, or for all if the list is nil; nil without a command.
func (u *upstream) decide(only []string) *karpenterbaseline.Round {
	going := 0
	for _, h := range u.hosts {
		if h.going != nil {
			going++
		}
	}
	allowed := int(math.Ceil(0.1*float64(len(u.hosts)))) - going
	if allowed <= 0 {
		return nil
	}
	c, err := karpenterbaseline.Consolidate(u.Context(), u.scenario(allowed, only), karpenterbaseline.Options{Concurrency: 1, Rounds: 1})
	if err != nil && !strings.Contains(err.Error(), "leaves a pod unplaced") {
		u.Fatal(err)
	}
	if err != nil || len(c.Rounds) == 0 {
		return nil
	}
	return &c.Rounds[0]
}

func (u *upstream) carryOut(r *karpenterbaseline.Round) {
	out := &replacing{}
	for _, n := range r.Replacements {
		h := u.launchNode(n)
		h.cause = replacement
		out.came = append(out.came, h)
	}
	for _, h := range u.hosts {
		if slices.Contains(r.Removed, h.node.Name) {
			h.going, out.nodes = out, append(out.nodes, h)
		}
	}
	u.commands = append(u.commands, out)
}

func (u *upstream) launchNode(n karpenterbaseline.NewNode) *host {
	return u.launch(&planning.PlannedNode{NodePool: n.NodePool, Offerings: []planning.PricedOffering{{
		Offering: event.Offering{InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType}, PricePerHour: n.Price,
	}}})
}

// scenario describes the cluster for Karpenter, without the nodes that are disrupted. Consolidation may disrupt so many nodes of
// the list; nil lists all.
func (u *upstream) scenario(allowed int, only []string) *karpenterbaseline.Scenario {
	p := *u.base.NodePools[0].DeepCopy()
	p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: strconv.Itoa(allowed)}}
	p.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(0) // Karpenter would read it by the real clock.
	type described struct {
		Name, NodePool, InstanceType, Zone, CapacityType string
		Kept                                             bool
		Pods                                             []corev1.Pod
	}
	var pending []corev1.Pod
	for _, p := range u.waiting {
		pending = append(pending, describePod(p, false))
	}
	var nodes []described
	for _, h := range u.hosts {
		if h.going != nil {
			continue
		}
		one := described{
			Name: h.node.Name, NodePool: p.Name, InstanceType: h.node.Labels[corev1.LabelInstanceTypeStable], Zone: h.zone,
			CapacityType: h.node.Labels[karpenter.CapacityTypeLabelKey],
			Kept: !h.node.Initialized || h.node.NominatedUntil.After(u.now) || u.now.Sub(h.podEvent) < time.Second ||
				only != nil && !slices.Contains(only, h.node.Name),
		}
		for _, p := range h.pods {
			one.Pods = append(one.Pods, describePod(p, u.spare(p.app) <= 0))
		}
		nodes = append(nodes, one)
	}
	text, err := json.Marshal(map[string]any{"name": "day", "instanceTypes": u.types, "nodePools": []karpenter.NodePool{p}, "pods": pending, "nodes": nodes})
	if err != nil {
		u.Fatal(err)
	}
	s, err := karpenterbaseline.Parse(text, nil)
	if err != nil {
		u.Fatal(err)
	}
	return s
}

// describePod returns a pod. One that a PodDisruptionBudget blocks is protected, because the scenario has no budgets.
func describePod(p *replica, blocked bool) corev1.Pod {
	requests := p.app.spec.Requests.DeepCopy()
	delete(requests, corev1.ResourcePods)
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": p.app.name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: p.app.name, UID: "1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeSelector: p.app.spec.NodeSelector,
			Containers:   []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
	if blocked || p.app.spec.DoNotDisrupt != "" {
		pod.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	}
	return pod
}
