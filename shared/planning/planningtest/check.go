package planningtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// CheckResult returns every rule of Kubernetes and of the NodePools that a result breaks, as the plan validator finds
// them. The validator reads documents, so the batch and the result are converted. Volumes are not checked. EC2 may
// launch a NodeClaim with any of the values that its requirements list, so the plan is checked with each of them.
func CheckResult(batch planning.Batch, cat catalog.Catalogue, result planning.Result) error {
	values := 1
	for i := range batch.Snapshot.Nodes {
		for _, r := range openRequirements(&batch.Snapshot.Nodes[i]) {
			values = max(values, len(r.Values))
		}
	}
	partitions := instancetypes.New(batch.Snapshot, catalog.Catalogue{PlacementGroups: cat.PlacementGroups}).Partitions
	for _, count := range partitions {
		values = max(values, int(count))
	}
	for value := range values {
		if err := checkWithValue(batch, cat, result, value, partitions); err != nil {
			return err
		}
	}
	return nil
}

// openRequirements returns the requirements that list values of a NodeClaim which is not launched.
func openRequirements(n *planning.Node) []karpenter.NodeSelectorRequirementWithMinValues {
	if n.Launched {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Requirements), func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return r.Operator != karpenter.NodeSelectorOpIn || len(r.Values) == 0
	})
}

// checkWithValue checks a result as if EC2 chose the values at the index for NodeClaims that are not launched.
func checkWithValue(batch planning.Batch, cat catalog.Catalogue, result planning.Result, value int, partitions map[string]int64) error {
	d := &documents{batch: batch, cat: cat, value: value, partitions: partitions, types: map[string]*planvalidator.InstanceType{}}
	d.addCluster()
	d.addPlan(result)
	for _, name := range slices.Sorted(maps.Keys(d.types)) {
		d.scenario.InstanceTypes = append(d.scenario.InstanceTypes, *d.types[name])
	}
	var errs []error
	for _, v := range planvalidator.CheckPlan(&d.scenario, &d.plan) {
		errs = append(errs, v)
	}
	return errors.Join(errs...)
}

// documents are the documents of the plan validator for a batch and its result. Pods have their UIDs as names.
type documents struct {
	batch planning.Batch
	cat   catalog.Catalogue
	// value is the index of the values with which open NodeClaims are launched, and of the partitions that EC2 chooses.
	value int
	// partitions are the numbers of partitions of the placement groups, by node class.
	partitions map[string]int64
	scenario   planvalidator.Scenario
	plan       planvalidator.Result
	// types are the instance types of the result by node class, tenancy, partition and name, with the offerings of the result.
	types map[string]*planvalidator.InstanceType
}

func (d *documents) addCluster() {
	s := &d.batch.Snapshot
	d.scenario.PriceLimit, d.scenario.Namespaces = s.Settings.PriceLimit, s.Namespaces
	for i := range s.NodePools {
		d.scenario.NodePools = append(d.scenario.NodePools, newPoolDocument(&s.NodePools[i], s.Settings))
	}
	for i := range s.Nodes {
		d.scenario.Nodes = append(d.scenario.Nodes, d.newNodeDocument(&s.Nodes[i]))
	}
	for i := range s.DaemonSets {
		d.scenario.DaemonSetPods = append(d.scenario.DaemonSetPods, newPodDocument(s.DaemonSets[i], fmt.Sprint("daemon-", i)))
	}
	for _, class := range d.batch.Pending {
		for _, pod := range class.Pods {
			d.scenario.Pods = append(d.scenario.Pods, newPodDocument(class.Spec, pod.UID))
		}
	}
}

// newPoolDocument leaves out the minValues if the policy allows a plan to relax them.
func newPoolDocument(pool *karpenter.NodePool, settings planning.Settings) (out planvalidator.NodePool) {
	text, err := json.Marshal(pool)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("converting NodePool %s: %v", pool.Name, err))
	}
	for i := range out.Spec.Template.Spec.Requirements {
		if settings.MinValuesPolicy == "BestEffort" {
			out.Spec.Template.Spec.Requirements[i].MinValues = nil
		}
	}
	return out
}

// newNodeDocument has one pod for everything that the node's pods use. The pods themselves have only what rules on
// other pods need.
func (d *documents) newNodeDocument(n *planning.Node) planvalidator.Node {
	labels := d.labelsOfNode(n)
	out := planvalidator.Node{
		Name: cmp.Or(n.Claim, n.Name), NodePool: n.NodePool, InstanceType: labels[corev1.LabelInstanceTypeStable],
		Zone: labels[corev1.LabelTopologyZone], CapacityType: labels[karpenter.CapacityTypeLabelKey], Removing: n.MarkedForDeletion,
		Pods: []corev1.Pod{newPodDocument(planning.PodSpec{Requests: n.Used, HostPorts: n.HostPorts}, "used on "+n.Name)},
	}
	if n.Claim != "" || n.NodePool != "" {
		out.Price = d.priceOfNode(n)
	}
	pools := d.batch.Snapshot.NodePools
	i := slices.IndexFunc(pools, func(p karpenter.NodePool) bool { return p.Name == n.NodePool })
	if n.IsBeingRemoved() && !n.MarkedForDeletion && i >= 0 && !planning.CountsNodesBeingRemoved(&pools[i]) {
		out.NodePool = "" // It is being replaced, and the limits do not count it.
	}
	for _, class := range slices.Concat(n.Pods, n.DaemonPods) {
		class.Spec.Requests, class.Spec.HostPorts = nil, nil
		for i, pod := range class.Pods {
			if !pod.Terminating { // It uses resources, but plans count it in no rule on other pods.
				out.Pods = append(out.Pods, newPodDocument(class.Spec, fmt.Sprintf("%s on %s %d", pod.UID, n.Name, i)))
			}
		}
	}
	pods := n.Allocatable[corev1.ResourcePods]
	pods.Sub(n.Used[corev1.ResourcePods])
	pods.Add(*resource.NewQuantity(int64(len(out.Pods)), resource.DecimalSI))
	status := corev1.NodeStatus{Allocatable: corev1.ResourceList{}, Capacity: corev1.ResourceList{}}
	maps.Copy(status.Allocatable, n.Allocatable)
	maps.Copy(status.Capacity, n.Allocatable)
	maps.Copy(status.Capacity, n.Capacity)
	status.Allocatable[corev1.ResourcePods] = pods
	taints := slices.DeleteFunc(slices.Clone(n.Taints), func(t corev1.Taint) bool { // Some taints end when the node is ready, as in Karpenter for a node that reboots.
		starting := (!n.Initialized || n.Rebooting) && slices.Contains(d.batch.Snapshot.FindStartupTaints(n), t)
		return starting || n.Rebooting && t == karpenter.RebootingTaint()
	})
	for _, r := range openRequirements(n) {
		if _, known := n.Labels[r.Key]; !known && len(r.Values) > 1 {
			out.OpenLabels = append(out.OpenLabels, r.Key)
		}
	}
	if n.Labels[karpenter.LabelPlacementGroupPartition] == "" && d.partitions[d.classOfNode(n)] > 0 {
		out.OpenLabels = append(out.OpenLabels, karpenter.LabelPlacementGroupPartition)
	}
	out.Actual = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}, Status: status}
	return out
}

// labelsOfNode returns the labels of a node, with the chosen values of a NodeClaim that is not launched.
func (d *documents) labelsOfNode(n *planning.Node) map[string]string {
	out := maps.Clone(n.Labels)
	for _, r := range openRequirements(n) {
		if _, known := out[r.Key]; !known {
			out[r.Key] = r.Values[d.value%len(r.Values)]
		}
	}
	if count := d.partitions[d.classOfNode(n)]; count > 0 && out[karpenter.LabelPlacementGroupPartition] == "" {
		out[karpenter.LabelPlacementGroupPartition] = d.choosePartition(count)
	}
	return out
}

// classOfNode returns the name of the node class of the node's NodePool.
func (d *documents) classOfNode(n *planning.Node) string {
	for i := range d.batch.Snapshot.NodePools {
		if pool := &d.batch.Snapshot.NodePools[i]; pool.Name == n.NodePool && pool.Spec.Template.Spec.NodeClassRef != nil {
			return pool.Spec.Template.Spec.NodeClassRef.Name
		}
	}
	return ""
}

// choosePartition returns the partition that EC2 chooses in a group with this many.
func (d *documents) choosePartition(count int64) string {
	return strconv.FormatInt(int64(d.value)%count+1, 10)
}

// partitionOfLaunch returns the partition of a planned node: the lowest one that its requirements list, or EC2's choice;
// empty without partitions.
func (d *documents) partitionOfLaunch(n *planning.PlannedNode) string {
	count := d.partitions[n.NodeClass]
	if count == 0 {
		return ""
	}
	if listed, _ := n.Requirements[karpenter.LabelPlacementGroupPartition].ListValues(); len(listed) > 0 {
		return listed[0]
	}
	return d.choosePartition(count)
}

// priceOfNode returns the price that a node records, or else the catalogue price of its offering. A node in a reservation of a
// node class is paid for already.
func (d *documents) priceOfNode(n *planning.Node) float64 {
	if n.PricePerHour > 0 {
		return n.PricePerHour
	}
	if price, ok := n.Capacity[planning.PriceResource]; ok {
		return price.AsApproximateFloat64() / 1e6
	}
	if d.isReserved(n.Labels) {
		return 0
	}
	t, _ := d.cat.Find(n.Labels[corev1.LabelInstanceTypeStable])
	dearest := 0.0
	for _, o := range t.Offerings {
		if o.HasPrice() && o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpenter.CapacityTypeLabelKey] {
			return o.PricePerHour
		}
		dearest = math.Max(dearest, o.PricePerHour)
	}
	return dearest
}

// isReserved reports whether a node class has the reservation of a node with these labels.
func (d *documents) isReserved(labels map[string]string) bool {
	return slices.ContainsFunc(d.batch.Snapshot.NodeClasses, func(c karpenter.EC2NodeClass) bool {
		return slices.ContainsFunc(c.Status.CapacityReservations, func(r karpenter.CapacityReservation) bool {
			return r.ID == labels[karpenter.LabelCapacityReservationID] && r.AvailabilityZone == labels[corev1.LabelTopologyZone] && r.InstanceType == labels[corev1.LabelInstanceTypeStable]
		})
	})
}

func newPodDocument(spec planning.PodSpec, name string) corev1.Pod {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: spec.Requests}}
	for _, p := range spec.HostPorts {
		c.Ports = append(c.Ports, corev1.ContainerPort{HostIP: p.IP, HostPort: p.Port, Protocol: p.Protocol})
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: name, Labels: spec.Labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{c}, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity,
			Tolerations: spec.Tolerations, TopologySpreadConstraints: spec.Spread, Priority: new(spec.Priority),
		},
	}
}

func (d *documents) addPlan(result planning.Result) {
	out := &d.plan
	out.Pods, out.ExistingNodes, out.ExistingPods, out.Unscheduled = len(d.scenario.Pods), map[string]int{}, map[string][]string{}, map[string]string{}
	for i := range result.Nodes {
		n := d.newLaunchDocument(&result.Nodes[i])
		out.NewNodes = append(out.NewNodes, n)
		out.Summary.Scheduled += len(n.Pods)
		out.Summary.DollarsPerHour += n.Price
	}
	for _, n := range result.Nominations {
		name := cmp.Or(n.Claim, n.Node)
		out.ExistingPods[name] = append(out.ExistingPods[name], n.Namespace+"/"+n.Pod.UID)
		out.ExistingNodes[name]++
	}
	for _, u := range result.Unplaced {
		var reason strings.Builder
		for _, r := range u.Rejections {
			reason.WriteString(r.Rule)
		}
		for _, pod := range u.Pods {
			out.Unscheduled[u.Namespace+"/"+pod.UID] = reason.String()
		}
	}
	out.Summary.NewNodes = len(out.NewNodes)
	out.Summary.Scheduled += len(result.Nominations)
	out.Summary.Unscheduled = len(out.Unscheduled)
}

func (d *documents) newLaunchDocument(n *planning.PlannedNode) planvalidator.NewNode {
	out := planvalidator.NewNode{NodePool: n.NodePool, Price: n.PricePerHour, Labels: n.Requirements.Labels()}
	delete(out.Labels, karpenter.LabelCapacityReservationID) // Only the reserved offerings have it.
	for _, r := range n.Requirements.NodeSelectorRequirements() {
		out.Requirements = append(out.Requirements, planvalidator.Requirement{Key: r.Key, Operator: r.Operator, Values: r.Values, MinValues: r.MinValues})
	}
	for _, pod := range n.Pods {
		out.Pods = append(out.Pods, pod.Namespace+"/"+pod.Pod.UID)
	}
	var types []string
	for _, o := range n.Offerings {
		t := d.addType(n, o)
		out.Offerings = append(out.Offerings, planvalidator.LaunchOffering{InstanceType: t, Zone: o.Zone, CapacityType: o.CapacityType})
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if len(n.Offerings) > 0 {
		out.InstanceType, out.Zone, out.CapacityType = types[0], n.Offerings[0].Zone, n.Offerings[0].CapacityType
	}
	out.Options = min(60, len(types))
	return out
}

// addType adds the offering to the document of its instance type, and returns the name of the type there.
func (d *documents) addType(n *planning.PlannedNode, o planning.PricedOffering) string {
	tenancy, partition := planning.InstanceTenancy(n.Requirements), d.partitionOfLaunch(n)
	name := fmt.Sprintf("%s/%s%s/%s", n.NodeClass, tenancy, partition, o.InstanceType)
	s := d.batch.Snapshot
	class := &s.NodeClasses[slices.IndexFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == n.NodeClass })]
	t := d.types[name]
	if t == nil {
		from, _ := d.cat.Find(o.InstanceType)
		config, err := catalog.NewNodeConfig(class)
		if err == nil {
			config, err = expression.Resolve(from, config)
		}
		if err != nil {
			panic(err)
		}
		capacity, overhead, _ := catalog.NodeResources(from, config)
		t = &planvalidator.InstanceType{
			Name: name, Arch: from.Arch, OS: []string{catalog.Linux}, Capacity: capacity, Overhead: overhead,
			Labels: catalog.Labels(from, catalog.Offering{}, d.cat.Region),
		}
		t.Labels[karpenter.LabelInstanceTenancy] = tenancy
		if partition != "" {
			t.Labels[karpenter.LabelPlacementGroupPartition] = partition
		}
		d.types[name] = t
	}
	if !slices.ContainsFunc(t.Offerings, func(p planvalidator.Offering) bool { return p.Zone == o.Zone && p.CapacityType == o.CapacityType }) {
		t.Offerings = append(t.Offerings, planvalidator.Offering{
			Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType, Price: o.PricePerHour,
			Available: !planning.IsOfferingUnavailable(o, class, s) &&
				slices.ContainsFunc(class.Status.Subnets, func(subnet karpenter.Subnet) bool { return subnet.Zone == o.Zone }),
		})
	}
	return name
}
