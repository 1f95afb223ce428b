package upstream

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// setting is one configuration of nodes, for Karpenter and for Joist.
type setting struct {
	name     string
	kubelet  karpenter.ParsedKubelet
	raid     bool
	networks []karpenter.NetworkInterface
	reserved int
	overhead float64
}

var settings = []setting{
	{name: "default", overhead: 0.075},
	{name: "maxPods", overhead: 0.075, kubelet: karpenter.ParsedKubelet{MaxPods: new(intstr.FromInt32(42))}},
	{name: "podsPerCore", overhead: 0.075, kubelet: karpenter.ParsedKubelet{PodsPerCore: new(int32(3))}},
	{name: "reserved interfaces", overhead: 0.075, reserved: 1},
	{name: "other overhead", overhead: 0.1},
	{name: "no overhead", overhead: 0},
	{name: "reserves", overhead: 0.075, kubelet: karpenter.ParsedKubelet{
		KubeReserved:   map[string]string{"cpu": "500m", "ephemeral-storage": "3Gi"},
		SystemReserved: map[string]string{"cpu": "100m", "memory": "200Mi"},
	}},
	{name: "eviction", overhead: 0.075, kubelet: karpenter.ParsedKubelet{
		EvictionHard: map[string]string{"memory.available": "7%", "nodefs.available": "3Gi"},
		EvictionSoft: map[string]string{"memory.available": "20%"}, EvictionSoftGracePeriod: nil,
	}},
	{name: "no eviction", overhead: 0.075, kubelet: karpenter.ParsedKubelet{
		EvictionHard: map[string]string{"memory.available": "100%", "nodefs.available": "100%"},
	}},
	{name: "local disks", overhead: 0.075, raid: true},
	{name: "EFA only", overhead: 0.075, networks: []karpenter.NetworkInterface{
		{NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: karpenter.InterfaceTypeInterface},
		{NetworkCardIndex: 0, DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly},
	}},
}

var families = []string{
	karpenter.AMIFamilyAL2, karpenter.AMIFamilyAL2023, karpenter.AMIFamilyBottlerocket, karpenter.AMIFamilyCustom, karpenter.AMIFamilyWindows2022,
}

// theirs returns Karpenter's resources of a type.
func (s setting) theirs(t *testing.T, info ec2types.InstanceTypeInfo, family string) (capacity, overhead, allocatable corev1.ResourceList) {
	t.Helper()
	ctx := options.ToContext(t.Context(), &options.Options{VMMemoryOverheadPercent: s.overhead, ReservedENIs: s.reserved})
	var policy *awsv1.InstanceStorePolicy
	if s.raid {
		policy = new(awsv1.InstanceStorePolicyRAID0)
	}
	var networks []*awsv1.NetworkInterface
	for _, n := range s.networks {
		networks = append(networks, &awsv1.NetworkInterface{
			NetworkCardIndex: n.NetworkCardIndex, DeviceIndex: n.DeviceIndex, InterfaceType: awsv1.InterfaceType(n.InterfaceType),
		})
	}
	k := s.kubelet
	var maxPods *int32
	if k.MaxPods != nil {
		maxPods = &k.MaxPods.IntVal
	}
	it := instancetype.NewInstanceType(ctx, info, "us-east-1", nil, nil, nil, policy, networks, maxPods, k.PodsPerCore,
		k.KubeReserved, k.SystemReserved, k.EvictionHard, k.EvictionSoft, family, nil)
	return it.Capacity, it.Overhead.Total(), it.Allocatable()
}

func (s setting) ours(it catalog.InstanceType, family string) (capacity, overhead, allocatable corev1.ResourceList) {
	config := catalog.NodeConfig{
		AMIFamily: family, Kubelet: s.kubelet, NetworkInterfaces: s.networks, ReservedENIs: int64(s.reserved), VMMemoryOverheadPercent: &s.overhead,
	}
	if s.raid {
		config.InstanceStorePolicy = karpenter.InstanceStorePolicyRAID0
	}
	return catalog.NodeResources(it, config)
}

// TestResourcesMatchKarpenter computes the resources of recorded types in every family and
// setting, with Karpenter's code and with Joist's.
func TestResourcesMatchKarpenter(t *testing.T) {
	recorded, err := fake.NewEC2API().DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, info := range recorded.InstanceTypes {
		it, ok := embedded.Find(string(info.InstanceType))
		if !ok {
			t.Fatalf("no %s", info.InstanceType)
		}
		for _, family := range families {
			for _, s := range settings {
				capacity, overhead, allocatable := s.theirs(t, info, family)
				c, o, a := s.ours(it, family)
				for _, diff := range []string{
					differ("capacity", capacity, c), differ("overhead", overhead, o), differ("allocatable", allocatable, a),
				} {
					if diff != "" {
						t.Errorf("%s, %s, %s: %s", it.Name, family, s.name, diff)
					}
				}
				compared++
			}
		}
	}
	t.Logf("%d types, %d comparisons", len(recorded.InstanceTypes), compared)
}

// differ returns the resources with different quantities; a missing one equals zero.
func differ(what string, want, got corev1.ResourceList) string {
	var out []string
	for name := range want {
		out = append(out, one(name, want, got))
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			out = append(out, one(name, want, got))
		}
	}
	text := strings.TrimSpace(strings.Join(out, " "))
	if text == "" {
		return ""
	}
	return what + ": " + text
}

func one(name corev1.ResourceName, want, got corev1.ResourceList) string {
	w, g := want[name], got[name]
	// Karpenter's thresholds are sums of fractions of bytes.
	if math.Abs(w.AsApproximateFloat64()-g.AsApproximateFloat64()) < 1e-6 {
		return ""
	}
	return fmt.Sprintf("%s is %s, Karpenter has %s", name, g.String(), w.String())
}
