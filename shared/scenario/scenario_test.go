package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

func TestPodsHaveNamesAndUIDs(t *testing.T) {
	s := shop(t)
	pods := s.Pods()
	var got []string
	for i, pod := range pods {
		got = append(got, pod.Namespace+"/"+pod.Name)
		if i > 0 && pods[i-1].UID >= pod.UID {
			t.Errorf("the UIDs %s and %s do not ascend", pods[i-1].UID, pod.UID)
		}
	}
	if diff := cmp.Diff([]string{"default/web-0", "default/web-1", "default/web-2", "batch/job"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(pods, s.Pods()); diff != "" {
		t.Errorf("the second call returns other pods: %s", diff)
	}
	if cpu := pods[3].Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "2" {
		t.Errorf("a limit of 2 is a request of %s", cpu)
	}
}

// amounts returns a list as one line, for comparisons.
func amounts(list corev1.ResourceList, names ...corev1.ResourceName) string {
	var out []string
	for _, name := range names {
		quantity := list[name]
		out = append(out, quantity.String())
	}
	return strings.Join(out, " ")
}

func TestProblemHoldsTheTypes(t *testing.T) {
	s := shop(t)
	batch, stock := s.Problem(s.Pods())
	if len(stock.ByNodeClass) != 1 || len(stock.ByNodeClass["default"]) != 4 || stock.Region != "eu-west-1" || s.Types() != 4 {
		t.Fatalf("the stock of %s has classes %d with %d types", stock.Region, len(stock.ByNodeClass), len(stock.ByNodeClass["default"]))
	}
	exotic := map[string]bool{}
	for _, one := range stock.ByNodeClass["default"] {
		exotic[one.Name] = one.Exotic
	}
	if diff := cmp.Diff(map[string]bool{"m7g.large": false, "m7i.xlarge": false, "g6.xlarge": true, "m7i.metal-24xl": true}, exotic); diff != "" {
		t.Error(diff)
	}
	small := stock.ByNodeClass["default"][0]
	if got := amounts(small.Allocatable, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods); got != "1930m 6903Mi 29" {
		t.Errorf("allocatable of %s is %s", small.Name, got)
	}
	if got := amounts(small.Capacity, corev1.ResourceCPU, corev1.ResourceMemory); got != "2 7577Mi" {
		t.Errorf("capacity of %s is %s", small.Name, got)
	}
	want := map[string]string{
		"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m7g.large", "topology.kubernetes.io/region": "eu-west-1",
		"karpenter.k8s.aws/instance-category": "m", "karpenter.k8s.aws/instance-family": "m7g",
	}
	if diff := cmp.Diff(want, small.Labels); diff != "" {
		t.Error(diff)
	}
	if o := small.Offerings[1]; len(small.Offerings) != 4 || o.Available || o.ZoneID != "euw1-az2" || o.PricePerHour != 0.0911 || o.InstanceType != "m7g.large" {
		t.Errorf("offers of %s: %+v", small.Name, small.Offerings)
	}
	class := batch.Snapshot.NodeClasses[0]
	if len(batch.Snapshot.NodeClasses) != 1 || class.Name != "default" || len(class.Status.Subnets) != 2 || !class.Status.Conditions.IsTrue("Ready") {
		t.Errorf("node classes: %+v", batch.Snapshot.NodeClasses)
	}
}

func TestProblemHoldsPodsAndNodes(t *testing.T) {
	s := shop(t)
	batch, _ := s.Problem(s.Pods())
	classes := func(list []planning.PodClass) (out []string) {
		for _, class := range list {
			words := []string{amounts(class.Spec.Requests, corev1.ResourceCPU)}
			for _, ref := range class.Pods {
				words = append(words, ref.Name)
			}
			out = append(out, fmt.Sprint(strings.Join(words, " "), " ", class.Spec.Labels))
		}
		return out
	}
	if diff := cmp.Diff([]string{"2 job map[]", "500m web-0 web-1 web-2 map[app:web]"}, classes(batch.Pending)); diff != "" {
		t.Error(diff)
	}
	if cpu := amounts(batch.Snapshot.DaemonSets[0].Requests, corev1.ResourceCPU); cpu != "100m" {
		t.Errorf("the daemon takes %s", cpu)
	}
	n, stranger := batch.Snapshot.Nodes[0], batch.Snapshot.Nodes[1]
	if diff := cmp.Diff([]string{"250m old-2 map[app:api]", "1 old-1 map[app:web]"}, classes(n.Pods)); diff != "" {
		t.Error(diff)
	}
	if used, daemons := amounts(n.Used, corev1.ResourceCPU, corev1.ResourcePods), amounts(n.DaemonRequests, corev1.ResourceCPU); used != "1350m 3" || daemons != "100m" {
		t.Errorf("used %s, by daemons %s", used, daemons)
	}
	if !n.Initialized || n.Claim != "node-7" || len(n.HostPorts) != 1 || len(n.Taints) != 1 || n.Pods[0].Pods[0].Node != "node-7" {
		t.Errorf("node: %+v", n)
	}
	want := map[string]string{
		"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "node-7", "node.kubernetes.io/instance-type": "m7g.large",
		"topology.kubernetes.io/region": "eu-west-1", "topology.kubernetes.io/zone": "eu-west-1a", "topology.k8s.aws/zone-id": "euw1-az1",
		"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default",
		"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "team": "shop",
		"karpenter.k8s.aws/instance-category": "m", "karpenter.k8s.aws/instance-family": "m7g",
	}
	if diff := cmp.Diff(want, n.Labels); diff != "" {
		t.Error(diff)
	}
	if stranger.Claim != "" || stranger.NodePool != "" || stranger.Labels["karpenter.sh/nodepool"] != "" || len(stranger.Taints) != 0 {
		t.Errorf("a node without NodePool: %+v", stranger)
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	text := strings.Replace(`{"nodePools": [{"metadata": {"name": "p"}, "spec": {"template": {"spec": {"nodeClassRef": {"name": "c"}}}}}], "instanceTypes": [`+kind+"]}",
		`"offerings": [`, `"offerings": [{"zone": "z1b", "capacityType": "reserved", "price": 0, "available": true}, `, 1)
	for _, tt := range []struct {
		name, text, note string
		offers           int
	}{
		{"nothing", strings.Replace(text, "reserved", "on-demand", 1), "", 2},
		{"reservations", text, "reserved offerings are left out", 1},
		{"other systems", strings.Replace(text, "linux", "windows", 1), "does not run linux", 0},
	} {
		s, err := scenario.Parse(nil, "s.json", []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		_, stock := s.Problem(nil)
		if got := len(stock.ByNodeClass["c"][0].Offerings); got != tt.offers || !strings.Contains(strings.Join(s.Notes, "\n"), tt.note) || (tt.note == "") != (len(s.Notes) == 0) {
			t.Errorf("%s: %d offers, notes %q", tt.name, got, s.Notes)
		}
	}
}
