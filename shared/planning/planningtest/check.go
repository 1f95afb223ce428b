package planningtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	set "k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// checker checks one result. It uses Kubernetes' own matching where possible, so that it does not
// repeat the planner's mistakes.
type checker struct {
	batch  planning.Batch
	cat    catalog.Catalogue
	result planning.Result
	specs  map[string]planning.PodSpec
	errs   []error
}

// CheckResult reports every error in a result: a pod that is lost or placed twice, a node with an
// offering that does not hold its pods, a resource or price limit that could be exceeded.
func CheckResult(batch planning.Batch, cat catalog.Catalogue, result planning.Result) error {
	c := &checker{batch: batch, cat: cat, result: result, specs: map[string]planning.PodSpec{}}
	for _, class := range batch.Pending {
		for _, pod := range class.Pods {
			c.specs[pod.UID] = class.Spec
		}
	}
	c.checkEachPodOnce()
	for i := range result.Nodes {
		c.checkPlannedNode(&result.Nodes[i])
	}
	c.checkNominations()
	c.checkLimits()
	c.checkPriceLimits()
	return errors.Join(c.errs...)
}

func (c *checker) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *checker) checkEachPodOnce() {
	seen := map[string]int{}
	for _, n := range c.result.Nominations {
		seen[n.Pod.UID]++
	}
	for _, n := range c.result.Nodes {
		for _, pod := range n.Pods {
			seen[pod.Pod.UID]++
		}
	}
	for _, u := range c.result.Unplaced {
		if len(u.Rejections) == 0 {
			c.failf("%d pods are unplaced without a reason", len(u.Pods))
		}
		for _, pod := range u.Pods {
			seen[pod.UID]++
		}
	}
	for uid := range c.specs {
		if seen[uid] != 1 {
			c.failf("pod %s is placed %d times", uid, seen[uid])
		}
	}
}

// checkPlannedNode checks the node with each of its offerings.
func (c *checker) checkPlannedNode(n *planning.PlannedNode) {
	if len(n.Offerings) == 0 || len(n.Pods) == 0 {
		c.failf("a node of NodePool %s has %d options and %d pods", n.NodePool, len(n.Offerings), len(n.Pods))
		return
	}
	c.checkMinValues(n)
	pool, class := c.findPool(n.NodePool), c.findClass(n.NodeClass)
	config, err := catalog.NewNodeConfig(class)
	if err != nil {
		c.failf("%w", err)
		return
	}
	for _, option := range n.Offerings {
		if option.PricePerHour < n.PricePerHour {
			c.failf("%s for %v is cheaper than the node's price %v", option.InstanceType, option.PricePerHour, n.PricePerHour)
		}
		t, _ := c.cat.Find(option.InstanceType)
		labels := catalog.Labels(t, catalog.Offering{Zone: option.Zone, ZoneID: option.ZoneID, CapacityType: option.CapacityType}, c.cat.Region)
		maps.Copy(labels, n.Requirements.Labels())
		labels[corev1.LabelHostname] = "new-node"
		labels[karpenter.NodeRegisteredLabelKey], labels[karpenter.NodeInitializedLabelKey] = "true", "true"
		_, _, allocatable := catalog.NodeResources(t, config)
		c.checkAvailability(option, class)
		c.checkNode("new "+option.InstanceType, labels, pool.Spec.Template.Spec.Taints, allocatable, nil, listPodUIDs(n.Pods))
		if !satisfiesPool(labels, pool) {
			c.failf("%s in %s does not satisfy NodePool %s", option.InstanceType, option.Zone, pool.Name)
		}
	}
}

// checkMinValues applies the API server's validation of a NodeClaim's requirements.
func (c *checker) checkMinValues(n *planning.PlannedNode) {
	for _, one := range n.Requirements.NodeSelectorRequirements() {
		switch {
		case one.MinValues == nil:
		case *one.MinValues < 1 || *one.MinValues > 50:
			c.failf("%s has minValues %d, want 1 to 50", one.Key, *one.MinValues)
		case one.Operator == corev1.NodeSelectorOpIn && len(one.Values) < *one.MinValues:
			c.failf("%s has minValues %d and lists %v", one.Key, *one.MinValues, one.Values)
		}
	}
}

func (c *checker) checkAvailability(option planning.PricedOffering, class *karpenter.EC2NodeClass) {
	if !slices.ContainsFunc(class.Status.Subnets, func(s karpenter.Subnet) bool { return s.Zone == option.Zone }) {
		c.failf("no subnet in zone %s", option.Zone)
	}
	for _, u := range c.batch.Snapshot.Unavailable {
		if u.Subnet != "" && slices.ContainsFunc(class.Status.Subnets, func(s karpenter.Subnet) bool {
			return s.Zone == option.Zone && !planning.IsSubnetUnavailable(s.ID, c.batch.Snapshot)
		}) {
			continue
		}
		if u.PlacementGroup != "" && class.Spec.PlacementGroupSelector == nil {
			continue
		}
		if (u.InstanceType == "" || u.InstanceType == option.InstanceType) && (u.Zone == "" || u.Zone == option.Zone) &&
			(u.CapacityType == "" || u.CapacityType == option.CapacityType) && c.batch.Snapshot.TakenAt.Before(u.Until) {
			c.failf("%s %s in %s is unavailable", option.CapacityType, option.InstanceType, option.Zone)
		}
	}
}

// checkNode checks that the node can run the pods, in addition to its current pods and future daemons.
func (c *checker) checkNode(what string, labels map[string]string, taints []corev1.Taint, room, used corev1.ResourceList, placed []string) {
	labels = addDeprecatedLabels(labels)
	total := used.DeepCopy()
	for _, daemon := range c.batch.Snapshot.DaemonSets {
		if used == nil && toleratesTaints(daemon, taints) && selectsNode(daemon, labels) {
			total = addResources(total, daemon.Requests)
		}
	}
	for i, uid := range placed {
		spec := c.specs[uid]
		if !toleratesTaints(spec, taints) {
			c.failf("pod %s does not tolerate the taints of %s", uid, what)
		}
		if !selectsNode(spec, labels) {
			c.failf("pod %s does not select %s", uid, what)
		}
		for _, other := range placed[:i] {
			c.checkPair(uid, spec, other, c.specs[other])
		}
		c.checkSpread(uid, spec, placed)
		total = addResources(total, spec.Requests)
	}
	for name, want := range total {
		if has := room[name]; want.Cmp(has) > 0 {
			c.failf("%s has %s of %s, and its pods request %s", what, has.String(), name, want.String())
		}
	}
}

// addDeprecatedLabels adds the deprecated label names that kubelets and drivers still set.
func addDeprecatedLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	for old, stable := range karpenter.NormalizedLabels() {
		if value, ok := labels[stable]; ok {
			out[old] = value
		}
	}
	return out
}

// checkSpread checks the spread constraints over host names for the pods of one node.
func (c *checker) checkSpread(uid string, spec planning.PodSpec, placed []string) {
	for _, constraint := range spec.Spread {
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		if err != nil || constraint.TopologyKey != corev1.LabelHostname || constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		count := 0
		for _, other := range placed {
			if c.specs[other].Namespace == spec.Namespace && selector.Matches(set.Set(c.specs[other].Labels)) {
				count++
			}
		}
		if count > int(constraint.MaxSkew) {
			c.failf("%d pods share a node, and the spread of pod %s allows %d", count, uid, constraint.MaxSkew)
		}
	}
}

// checkPair checks that two pods may share a node.
func (c *checker) checkPair(uid string, a planning.PodSpec, other string, b planning.PodSpec) {
	for _, p := range a.HostPorts {
		if slices.Contains(b.HostPorts, p) {
			c.failf("pods %s and %s both bind port %d", uid, other, p.Port)
		}
	}
	if hasAntiAffinity(a, b) || hasAntiAffinity(b, a) {
		c.failf("pods %s and %s must not share a node", uid, other)
	}
}

func hasAntiAffinity(a, b planning.PodSpec) bool {
	if a.Affinity == nil || a.Affinity.PodAntiAffinity == nil {
		return false
	}
	return slices.ContainsFunc(a.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
		selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		return err == nil && t.TopologyKey == corev1.LabelHostname && a.Namespace == b.Namespace && selector.Matches(set.Set(b.Labels))
	})
}

// checkNominations checks the existing nodes and NodeClaims that pods were placed on.
func (c *checker) checkNominations() {
	placed := map[string][]string{}
	for _, n := range c.result.Nominations {
		name := n.Node
		if n.Claim != "" {
			name = n.Claim
		}
		placed[name] = append(placed[name], n.Pod.UID)
	}
	for _, node := range c.batch.Snapshot.Nodes {
		name := node.Name
		if node.Claim != "" {
			name = node.Claim
		}
		if uids := placed[name]; len(uids) > 0 {
			if node.MarkedForDeletion {
				c.failf("node %s is being removed and has %d nominated pods", name, len(uids))
			}
			used := addResources(corev1.ResourceList{}, node.Used)
			c.checkNode("node "+name, node.Labels, node.Taints, node.Allocatable, used, uids)
		}
		delete(placed, name)
	}
	for name := range placed {
		c.failf("nominated node %q does not exist", name)
	}
}

// checkLimits counts each planned node as the largest type that it may become. Nodes that are being
// removed count only in pools with strict limits.
func (c *checker) checkLimits() {
	for i := range c.batch.Snapshot.NodePools {
		pool := &c.batch.Snapshot.NodePools[i]
		total := corev1.ResourceList{}
		for _, node := range c.batch.Snapshot.Nodes {
			if node.NodePool == pool.Name && (!isBeingRemoved(node) || pool.Annotations["joist.sh/limits"] == "strict") {
				total = addResources(total, node.Capacity, oneNode)
			}
		}
		before := total
		for _, n := range c.result.Nodes {
			if n.NodePool == pool.Name {
				total = addResources(total, c.maxCapacity(n), oneNode)
			}
		}
		for name, limit := range pool.Spec.Limits {
			was, now := before[name], total[name]
			if now.Cmp(limit) > 0 && now.Cmp(was) > 0 {
				c.failf("NodePool %s may use %s of %s, and its limit is %s", pool.Name, now.String(), name, limit.String())
			}
		}
	}
}

// isBeingRemoved reports whether the node is being removed or replaced.
func isBeingRemoved(n planning.Node) bool {
	return n.MarkedForDeletion || n.Proposal != nil && !n.Proposal.ConfirmedAt.IsZero()
}

var oneNode = corev1.ResourceList{karpenter.ResourceNodes: resource.MustParse("1")}

func (c *checker) maxCapacity(n planning.PlannedNode) corev1.ResourceList {
	out := corev1.ResourceList{}
	config, _ := catalog.NewNodeConfig(c.findClass(n.NodeClass))
	for _, option := range n.Offerings {
		t, _ := c.cat.Find(option.InstanceType)
		capacity, _, _ := catalog.NodeResources(t, config)
		for name, amount := range capacity {
			if was, ok := out[name]; !ok || was.Cmp(amount) < 0 {
				out[name] = amount
			}
		}
	}
	return out
}

func (c *checker) findPool(name string) *karpenter.NodePool {
	i := slices.IndexFunc(c.batch.Snapshot.NodePools, func(p karpenter.NodePool) bool { return p.Name == name })
	return &c.batch.Snapshot.NodePools[i]
}

func (c *checker) findClass(name string) *karpenter.EC2NodeClass {
	i := slices.IndexFunc(c.batch.Snapshot.NodeClasses, func(p karpenter.EC2NodeClass) bool { return p.Name == name })
	return &c.batch.Snapshot.NodeClasses[i]
}

// satisfiesPool checks the pool's requirements as node affinity, which is equivalent for Kubernetes'
// operators.
func satisfiesPool(labels map[string]string, pool *karpenter.NodePool) bool {
	var all []corev1.NodeSelectorRequirement
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.Operator != karpenter.NodeSelectorOpGte && r.Operator != karpenter.NodeSelectorOpLte {
			all = append(all, corev1.NodeSelectorRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values})
		}
	}
	if len(all) == 0 {
		return true
	}
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}}}}
	return selectsNode(planning.PodSpec{NodeSelector: pool.Spec.Template.Labels, Affinity: affinity}, labels)
}

func selectsNode(spec planning.PodSpec, labels map[string]string) bool {
	ok, err := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	return err == nil && ok
}

func toleratesTaints(spec planning.PodSpec, taints []corev1.Taint) bool {
	return !slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false)
		})
	})
}

func listPodUIDs(placed []planning.PlacedPod) []string {
	var out []string
	for _, p := range placed {
		out = append(out, p.Pod.UID)
	}
	return out
}

func addResources(lists ...corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, list := range lists {
		for name, amount := range list {
			so := total[name]
			so.Add(amount)
			total[name] = so
		}
	}
	return total
}
