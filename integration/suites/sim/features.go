package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
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
	// repairs is the gate NodeRepair, and repairsFirst the gate TerminateFirstRepair.
	repairs, repairsFirst bool
}

func newSeedFeatures(seed int64) seedFeatures {
	random := rand.New(rand.NewPCG(uint64(seed), 0x66656174)) //nolint:gosec // a seeded source: a run must be repeatable
	f := seedFeatures{publishDelay: time.Duration(random.IntN(40)) * time.Second}
	f.devices, f.reservation, f.terminateFirst = random.IntN(3) == 0, random.IntN(6) < 3, random.IntN(2) == 0
	f.expressions, f.spread, f.deletionCosts, f.repairs = random.IntN(4) == 0, random.IntN(4) == 0, random.IntN(3) == 0, random.IntN(3) == 0
	f.repairsFirst = random.IntN(2) == 0 && f.repairs && f.reservation
	f.terminateFirst = f.terminateFirst && f.reservation
	return f
}

const (
	// deviceWorkload is the Deployment with claims, and deviceClass the class of its devices.
	deviceWorkload, deviceClass, claimTemplate = "train", "gpu.nvidia.com", "one-gpu"
	// podsPerCore and reservedPerCore are the results of the expressions, in pods and millicores.
	podsPerCore, reservedPerCore = 20, 50
)

// countInto counts the seed for each of its features.
func (f seedFeatures) countInto(counts map[string]int) {
	for name, on := range map[string]bool{
		"devices": f.devices, "reservation": f.reservation, "terminate first": f.terminateFirst, "expressions": f.expressions, "spread": f.spread,
		"deletion costs": f.deletionCosts, "repairs": f.repairs, "repairs that terminate first": f.repairsFirst,
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
	return f.setRepair(o)
}

// setRepair sets the policies of node repair.
func (f seedFeatures) setRepair(o *embedded.Options) error {
	if !f.repairs {
		return nil
	}
	matcher, err := newRepairMatcher(f.repairsFirst)
	if err != nil {
		return err
	}
	o.Repair = matcher
	return nil
}

// featureObjects changes the NodePool and the class, and returns further objects.
func (f seedFeatures) featureObjects(w *embedded.EmbeddedCluster, pool *karpenter.NodePool, class *karpenter.EC2NodeClass) (out []cluster.Object) {
	if f.expressions {
		class.Spec.Kubelet = karpenter.KubeletConfiguration{
			"maxPods":      apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `"vcpus * %d"`, podsPerCore)},
			"kubeReserved": apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"cpu": "vcpus * %d"}`, reservedPerCore)},
		}
	}
	if f.reservation {
		addReservation(w, pool, class, reservedCount, "web")
		out = append(out, newBookedObjects(w, class.Spec.Kubelet)...)
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
