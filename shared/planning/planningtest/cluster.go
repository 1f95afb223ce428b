package planningtest

import (
	"fmt"
	"maps"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// clusterTypes are the types of nodes in a generated cluster, with four or eight cores.
var clusterTypes = []string{"m6g.xlarge", "m5.2xlarge", "r5.2xlarge", "c6g.2xlarge"}

// zones are the zones of a generated cluster.
var zones = []string{"ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c"}

// GenerateCluster returns a cluster as it may look after some deployments were scaled down: between an
// eighth and all of each node is used, by deployments of 3 to 300 replicas. Two in ten deployments are
// spread over the zones, one in ten has at most one pod per node, and one in ten requires one
// architecture. Equal random numbers give equal clusters.
func GenerateCluster(chance RandomSource, nodes, pods int) planning.Snapshot {
	d := &clusterGenerator{RandomSource: chance}
	s := NewBatch().Snapshot
	class := &s.NodeClasses[0]
	class.Status.Subnets = nil
	for i, zone := range zones {
		class.Status.Subnets = append(class.Status.Subnets, karpenter.Subnet{ID: fmt.Sprint("subnet-", i), Zone: zone, ZoneID: fmt.Sprint("apne2-az", i+1)})
	}
	pool := &s.NodePools[0]
	pool.Spec.Limits = nil
	pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints = nil, nil
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceCategory, Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
		{Key: karpenter.LabelInstanceGeneration, Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeOnDemand}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.ArchitectureAMD64, karpenter.ArchitectureARM64}},
	}
	d.types = map[string]instancetypes.Type{}
	for _, t := range instancetypes.New(s, NewCatalogue()).TypesForPool(pool.Name, class.Name) {
		d.types[t.Name] = t
	}
	for i := range nodes {
		d.nodes = append(d.nodes, d.newNode(i, pool.Name))
	}
	for n := 0; d.placed < pods; n++ {
		d.addDeployment(n, min(pods-d.placed, 3+int(3*math.Pow(1-d.Float64(), -0.8))%298))
	}
	s.Nodes = d.nodes
	return s
}

// RandomSource returns random numbers, like *rand.Rand.
type RandomSource interface {
	IntN(n int) int
	Float64() float64
}

// clusterGenerator generates a cluster.
type clusterGenerator struct {
	RandomSource
	types  map[string]instancetypes.Type
	nodes  []planning.Node
	placed int
}

func (d *clusterGenerator) newNode(i int, pool string) planning.Node {
	t, name, zone := d.types[clusterTypes[d.IntN(len(clusterTypes))]], fmt.Sprintf("node-%04d", i), zones[i%len(zones)]
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: Region,
		karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeOnDemand, karpenter.NodePoolLabelKey: pool,
		corev1.LabelInstanceTypeStable: t.Name,
	}
	maps.Copy(labels, t.Labels)
	maps.Copy(labels, planning.RegistrationLabels.Labels())
	for older, stable := range karpenter.NormalizedLabels() { // Kubelet and the EBS driver set both names.
		labels[older] = labels[stable]
	}
	return planning.Node{
		Name: name, Claim: "claim-" + name, ClaimUID: "uid-" + name, NodePool: pool, Instance: fmt.Sprintf("i-%017d", i), Labels: labels,
		Allocatable: t.Allocatable, Capacity: t.Capacity, Used: corev1.ResourceList{},
		Launched: true, Registered: true, Initialized: true, Ready: true, InitializedAt: Now.Add(-24 * time.Hour), Created: Now.Add(-24 * time.Hour),
	}
}

// addDeployment places the pods of a deployment on random nodes with free capacity.
func (d *clusterGenerator) addDeployment(n, replicas int) {
	app := fmt.Sprint("app-", n)
	cpu := []string{"50m", "100m", "100m", "200m", "250m", "500m"}[d.IntN(6)]
	memory := []string{"64Mi", "128Mi", "256Mi", "512Mi", "1Gi"}[d.IntN(5)]
	class := NewPods(app, replicas, cpu, memory, func(spec *planning.PodSpec) { d.addRules(spec, app) })
	for i := range class.Pods {
		d.placePod(class.Spec, class.Pods[i])
	}
	d.placed += replicas
}

func (d *clusterGenerator) addRules(spec *planning.PodSpec, app string) {
	spec.Labels = map[string]string{"app": app}
	own := &metav1.LabelSelector{MatchLabels: spec.Labels}
	switch d.IntN(10) {
	case 0, 1:
		spec.Spread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own}}
	case 2:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: own}},
		}}
	case 3:
		spec.NodeSelector = map[string]string{corev1.LabelArchStable: karpenter.ArchitectureARM64}
	}
}

// placePod tries 40 random nodes, and leaves out the pod if it fits on none of these.
func (d *clusterGenerator) placePod(spec planning.PodSpec, pod planning.PodRef) {
	for range 40 {
		node := &d.nodes[d.IntN(len(d.nodes))]
		if !d.canHold(node, &spec) {
			continue
		}
		for name, quantity := range spec.Requests {
			sum := node.Used[name]
			sum.Add(quantity)
			node.Used[name] = sum
		}
		node.Pods = append(node.Pods, planning.PodClass{Spec: spec, Pods: []planning.PodRef{pod}})
		return
	}
}

func (d *clusterGenerator) canHold(node *planning.Node, spec *planning.PodSpec) bool {
	for name, quantity := range spec.Requests {
		sum := node.Used[name]
		if sum.Add(quantity); sum.Cmp(node.Allocatable[name]) > 0 {
			return false
		}
	}
	for key, value := range spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	apart := spec.Affinity != nil
	for i := range node.Pods {
		if apart && node.Pods[i].Spec.Labels["app"] == spec.Labels["app"] {
			return false
		}
	}
	return true
}
