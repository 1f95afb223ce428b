package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// seedFeatures are the features that differ between seeds. They have a random source of their own. All are off in clusters of
// two versions, because the previous version lacks them.
type seedFeatures struct {
	// devices runs pods with ResourceClaims for GPUs, whose driver publishes them publishDelay after Ready.
	devices      bool
	publishDelay time.Duration
	// reservation lets the NodePool use a capacity reservation, and terminateFirst is the gate TerminateFirstDrift.
	reservation, terminateFirst bool
	// expressions sets kubelet settings with expressions.
	expressions bool
	// spread adds default topology spread constraints.
	spread bool
	// deletionCosts is the gate PodDeletionCostManagement.
	deletionCosts bool
	// repairs is the gate NodeRepair.
	repairs bool
}

func newSeedFeatures(seed int64) seedFeatures {
	random := rand.New(rand.NewPCG(uint64(seed), 0x66656174)) //nolint:gosec // a seeded source: a run must be repeatable
	f := seedFeatures{publishDelay: time.Duration(random.IntN(40)) * time.Second}
	f.devices, f.reservation, f.terminateFirst = random.IntN(3) == 0, random.IntN(3) == 0, random.IntN(2) == 0
	f.expressions, f.spread, f.deletionCosts, f.repairs = random.IntN(4) == 0, random.IntN(4) == 0, random.IntN(3) == 0, random.IntN(3) == 0
	f.terminateFirst = f.terminateFirst && f.reservation
	return f
}

const (
	// deviceWorkload is the Deployment with claims, and deviceClass the class of its devices.
	deviceWorkload, deviceClass, claimTemplate = "train", "gpu.nvidia.com", "one-gpu"
	// reservedType is the instance type of the capacity reservation, of which reservedCount instances exist.
	reservedType, reservedCount = "m6g.large", 3
	// unhealthyCondition is the node condition that repairs a node.
	unhealthyCondition = corev1.NodeConditionType("StorageReady")
)

// countInto counts the seed for each of its features.
func (f seedFeatures) countInto(counts map[string]int) {
	for name, on := range map[string]bool{
		"devices": f.devices, "reservation": f.reservation, "terminate first": f.terminateFirst, "expressions": f.expressions, "spread": f.spread,
		"deletion costs": f.deletionCosts, "repairs": f.repairs,
	} {
		if on {
			counts["seeds with "+name]++
		}
	}
}

// applyTo sets the gates.
func (f seedFeatures) applyTo(o *embedded.Options) error {
	o.PodDeletionCosts = f.deletionCosts
	o.Gates.NodeClassCEL, o.Gates.ReservedCapacity, o.Gates.TerminateFirstDrift = f.expressions, f.reservation, f.terminateFirst
	if f.devices {
		o.Devices, o.Gates.DRANVIDIAGPU = true, true
		o.Families = append([]string{"g4dn"}, o.Families...)
		o.ClaimTemplates = map[string]resourcev1.ResourceClaimSpec{claimTemplate: {Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: deviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
		}}}}
	}
	if f.spread {
		o.DefaultConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway}}
	}
	if !f.repairs {
		return nil
	}
	grace := time.Minute
	matcher, err := repair.NewMatcher(repair.PolicySet{Unhealthy: intstr.FromString("20%"), Policies: []repair.Policy{
		{Condition: unhealthyCondition, Status: corev1.ConditionFalse, Toleration: time.Minute, GracePeriod: &grace, Action: repair.Replace},
	}})
	if err != nil {
		return fmt.Errorf("the policies of node repair: %w", err)
	}
	o.Repair = matcher
	return nil
}

// featureObjects changes the NodePool and the class, and returns further objects.
func (f seedFeatures) featureObjects(w *embedded.EmbeddedCluster, pool *karpenter.NodePool, class *karpenter.EC2NodeClass) (out []cluster.Object) {
	if f.expressions {
		class.Spec.Kubelet = karpenter.KubeletConfiguration{
			"maxPods": apiextensionsv1.JSON{Raw: []byte(`"vcpus * 20"`)}, "kubeReserved": apiextensionsv1.JSON{Raw: []byte(`{"cpu": "vcpus * 20"}`)},
		}
	}
	if f.reservation {
		tags := map[string]string{"team": "web"}
		w.Cloud.AddReservation(cloud.Reservation{InstanceType: reservedType, Zone: w.AWS.Subnets[0].Zone, Available: reservedCount, Tags: tags})
		class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: tags}}
		for i := range pool.Spec.Template.Spec.Requirements {
			if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
				r.Values = append(r.Values, karpenter.CapacityTypeReserved)
			}
		}
	}
	if f.spread {
		for _, name := range []string{"web", "batch"} {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
			service.Spec.Selector = map[string]string{"app": name}
			out = append(out, service)
		}
	}
	if f.devices {
		out = append(out, newDeviceObjects(w)...)
	}
	return out
}

// newDeviceObjects returns the DeviceClass, the NodePool with GPUs and the Deployment with claims, and adds the AMI.
func newDeviceObjects(w *embedded.EmbeddedCluster) []cluster.Object {
	image := w.Cloud.AddImage(cloud.Image{Name: "amazon-eks-node-al2023-x86_64-nvidia", Arch: "amd64", Owner: "amazon"})
	w.Cloud.SetParameter("/aws/service/eks/optimized-ami/"+memcloud.KubernetesVersion+"/amazon-linux-2023/x86_64/nvidia/recommended/image_id", image.ID)
	gpus := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}}
	gpus.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}
	pool := newNodePool("gpu", 24, 6)
	in := func(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
		return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		in("karpenter.k8s.aws/instance-family", "g4dn"), in("karpenter.k8s.aws/instance-size", "xlarge"),
		in("karpenter.sh/capacity-type", "spot", "on-demand"), in("kubernetes.io/arch", "amd64"),
	}
	train := newDeployment(deviceWorkload, 500)
	train.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new(claimTemplate)}}
	return []cluster.Object{gpus, pool, train}
}

// fillReservation lets another account use up to all free instances of the reservation for a while.
func (c *chaos) fillReservation() {
	all, err := c.world.Cloud.DescribeReservations(context.Background())
	if err != nil || len(all) == 0 || all[0].Available == 0 {
		return
	}
	id, count := all[0].ID, 1+c.random.IntN(all[0].Available)
	c.world.Cloud.UseReservation(id, count)
	c.endings = append(c.endings, ending{c.world.Now().Add(c.drawDuration(1, 180)), func() { c.world.Cloud.UseReservation(id, -count) }})
}

// reclaimInstance interrupts an instance in the reservation.
func (c *chaos) reclaimInstance() {
	for _, r := range c.world.Cloud.Records() {
		if r.Reservation != "" && r.Ended.IsZero() && c.world.Cloud.Reclaim(r.ID) {
			return
		}
	}
}

// reclaimReservation makes all further launches into the reservation fail.
func (c *chaos) reclaimReservation() {
	all, err := c.world.Cloud.DescribeReservations(context.Background())
	if err == nil && len(all) > 0 && c.random.IntN(4) == 0 {
		c.world.Cloud.ReclaimReservation(all[0].ID)
	}
}

// sickenNode gives a node the condition that repairs it.
func (c *chaos) sickenNode() {
	nodes := c.listObjects(cluster.Nodes)
	if len(nodes) == 0 {
		return
	}
	now := metav1.NewTime(c.world.Now())
	c.world.Kube.ChangeObject(cluster.Nodes, cluster.KeyOf(nodes[c.random.IntN(len(nodes))]), func(o cluster.Object) {
		s := &o.(*corev1.Node).Status
		for _, condition := range s.Conditions {
			if condition.Type == unhealthyCondition {
				return
			}
		}
		s.Conditions = append(s.Conditions, corev1.NodeCondition{Type: unhealthyCondition, Status: corev1.ConditionFalse, Reason: "DiskFailed", LastTransitionTime: now})
	})
}
