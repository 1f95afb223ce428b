package planvalidator_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// of returns a scenario with the pods.
func of(pods ...corev1.Pod) func() *planvalidator.Scenario {
	return func() *planvalidator.Scenario { return parsed(scenario(pods...)) }
}

// altered returns a scenario with a change.
func altered(change func(*planvalidator.Scenario), pods ...corev1.Pod) func() *planvalidator.Scenario {
	return func() *planvalidator.Scenario {
		s := scenario(pods...)
		change(s)
		return parsed(s)
	}
}

// ofTemplate adds a label to the first pool's template.
func ofTemplate(name, value string) func(*planvalidator.Scenario) {
	return func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Metadata.Labels = map[string]string{name: value}
	}
}

// inPool sets a launch's pool.
func inPool(name string, n planvalidator.NewNode) planvalidator.NewNode {
	n.NodePool = name
	return n
}

// bought sets a launch's capacity type.
func bought(as string, n planvalidator.NewNode) planvalidator.NewNode {
	n.CapacityType = as
	return n
}

func stating(labels map[string]string, n planvalidator.NewNode) planvalidator.NewNode {
	n.Labels = labels
	return n
}

// machineMistakes are plans whose instance types are not available.
func machineMistakes() []mistake {
	one := pod("a")
	right := plans(launch("small", "z1", "a"))
	soldOut := altered(func(s *planvalidator.Scenario) { s.InstanceTypes[0].Offerings[2].Available = false }, one)
	teams := altered(func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{require("team", "In", "red", "green")}
	}, one)
	return []mistake{
		{"no such pool", planvalidator.Offered, of(one), right, plans(inPool("none", launch("small", "z1", "a")))},
		{"no such type", planvalidator.Offered, of(one), right, changed(func(r *planvalidator.Result) { r.NewNodes[0].InstanceType = "none" }, launch("small", "z1", "a"))},
		{"no such zone", planvalidator.Offered, of(one), right, changed(func(r *planvalidator.Result) { r.NewNodes[0].Zone = "z4" }, launch("small", "z1", "a"))},
		{"no such capacity type", planvalidator.Offered, of(one), right, changed(func(r *planvalidator.Result) { r.NewNodes[0].CapacityType = "reserved" }, launch("small", "z1", "a"))},
		{"a zone that the template does not have", planvalidator.Offered, altered(ofTemplate(zone, "z1"), one), right, plans(launch("small", "z2", "a"))},
		{"a family that the template does not have", planvalidator.Offered, altered(ofTemplate("karpenter.k8s.aws/instance-family", "s"), one), right, plans(launch("little", "z1", "a"))},
		{"sold out", planvalidator.Offered, soldOut, right, plans(launch("small", "z2", "a"))},
		{"a label that the pool does not list", planvalidator.Offered, teams, plans(stating(map[string]string{"team": "red"}, launch("small", "z1", "a"))), plans(stating(map[string]string{"team": "blue"}, launch("small", "z1", "a")))},
		{"a label that the machine has otherwise", planvalidator.Offered, of(one), plans(stating(map[string]string{zone: "z1"}, launch("small", "z1", "a"))), plans(stating(map[string]string{zone: "z2"}, launch("small", "z1", "a")))},
		{
			"another offering's", planvalidator.Priced, of(one), plans(bought("spot", launch("small", "z1", "a"))),
			changed(func(r *planvalidator.Result) { r.NewNodes[0].Price, r.Summary.DollarsPerHour = 0.04, 0.04 }, launch("small", "z1", "a")),
		},
	}
}

// sidecar adds an init container that keeps running.
func sidecar(cpu string, ports ...corev1.ContainerPort) with {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: "s", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Ports: ports,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		})
	}
}

// hostMistakes are plans whose nodes do not meet their pods' requirements.
func hostMistakes() []mistake {
	full := func(s *planvalidator.Scenario) { existing(s, "old", "small", "z1", pod("there")) }
	daemonThere := func(s *planvalidator.Scenario) {
		d := pod("daemon-x", requests("cpu", "500m"))
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "daemon", Controller: new(true)}}
		existing(s, "old", "small", "z1", d)
		existing(s, "older", "small", "z1")
	}
	toOld := func(pods ...string) func(*planvalidator.Scenario) *planvalidator.Result {
		return changed(func(r *planvalidator.Result) { join(r, "old", pods...) })
	}
	overhead := func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("1")} }
	limited := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}
	}
	noDaemonInTainted := pod("a", requests("cpu", "2"), tolerates("blue"))
	blue := func(machine string) planvalidator.NewNode { return inPool("tainted", launch(machine, "z1", "a")) }
	repelled := func(effect corev1.TaintEffect) func() *planvalidator.Scenario {
		return altered(func(s *planvalidator.Scenario) {
			s.NodePools[1].Spec.Template.Spec.Taints[0].Effect = effect
		}, pod("a"))
	}
	prefer := altered(func(s *planvalidator.Scenario) {
		s.NodePools[1].Spec.Template.Spec.Taints = append(s.NodePools[1].Spec.Template.Spec.Taints, corev1.Taint{Key: "mild", Effect: corev1.TaintEffectPreferNoSchedule})
	}, pod("a", tolerates("blue")), pod("b"))
	return []mistake{
		{"a CPU too many", planvalidator.Resources, of(pod("a", requests("cpu", "2"))), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"the daemon does not fit", planvalidator.Resources, of(pod("a", requests("cpu", "1600m"))), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"the daemon stays away", planvalidator.Resources, of(noDaemonInTainted), plans(blue("small")), plans(launch("small", "z1", "a"))},
		{"no device", planvalidator.Resources, of(pod("a", requests("example.com/gpu", "1"))), plans(launch("gpu", "z1", "a")), plans(launch("large", "z1", "a"))},
		{
			"more pods than the node may run", planvalidator.Resources,
			func() *planvalidator.Scenario {
				s := scenario()
				s.PodGroups = []planvalidator.PodGroup{{Count: 10, Template: pod("p", requests("cpu", "100m"))}}
				return parsed(s)
			},
			plans(launch("large", "z1", "p-0", "p-1", "p-2", "p-3", "p-4", "p-5", "p-6", "p-7", "p-8"), launch("small", "z1", "p-9")),
			plans(launch("large", "z1", "p-0", "p-1", "p-2", "p-3", "p-4", "p-5", "p-6", "p-7", "p-8", "p-9")),
		},
		{"sidecars count", planvalidator.Resources, of(pod("a", sidecar("600m"))), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"overhead counts", planvalidator.Resources, of(pod("a", overhead)), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"limits are requests", planvalidator.Resources, of(pod("a", limited)), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"an old node is full", planvalidator.Resources, altered(full, pod("a"), pod("b", requests("cpu", "500m"))), changed(func(r *planvalidator.Result) { join(r, "old", "b") }, launch("small", "z1", "a")), changed(func(r *planvalidator.Result) { join(r, "old", "a") }, launch("small", "z1", "b"))},
		{"a daemon that is there counts once", planvalidator.Resources, altered(daemonThere, pod("a", requests("cpu", "1500m"))), toOld("a"), func(s *planvalidator.Scenario) *planvalidator.Result {
			s.Pods[0].Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1501m")
			return toOld("a")(s)
		}},
		{"a selector", planvalidator.Selectors, of(pod("a", selects(zone, "z2"))), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{"an old label", planvalidator.Selectors, of(pod("a", selects(corev1.LabelFailureDomainBetaZone, "z2"))), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{"a zone by its id", planvalidator.Selectors, of(pod("a", selects("topology.k8s.aws/zone-id", "id-2"))), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{"a capacity type", planvalidator.Selectors, of(pod("a", selects(capacity, "spot"))), plans(bought("spot", launch("small", "z2", "a"))), plans(launch("small", "z1", "a"))},
		{"a pool's label", planvalidator.Selectors, of(pod("a", selects("team", "blue"), tolerates("blue"))), plans(blue("small")), plans(launch("small", "z1", "a"))},
		{"a pool by name", planvalidator.Selectors, of(pod("a", selects("karpenter.sh/nodepool", "tainted"), tolerates("blue"))), plans(blue("small")), plans(launch("small", "z1", "a"))},
		{"alternatives", planvalidator.Selectors, of(pod("a", wants(that(zone, "In", "z3"), that(corev1.LabelInstanceTypeStable, "In", "large")))), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"NotIn", planvalidator.Selectors, of(pod("a", wants(that(zone, "NotIn", "z1")))), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{"Gt", planvalidator.Selectors, of(pod("a", wants(that("karpenter.k8s.aws/instance-cpu", "Gt", "2")))), plans(launch("large", "z1", "a")), plans(launch("small", "z1", "a"))},
		{"DoesNotExist", planvalidator.Selectors, of(pod("a", wants(that("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist")))), plans(launch("large", "z1", "a")), plans(launch("gpu", "z1", "a"))},
		{"NoSchedule", planvalidator.Taints, repelled(corev1.TaintEffectNoSchedule), plans(launch("small", "z1", "a")), plans(blue("small"))},
		{"NoExecute", planvalidator.Taints, repelled(corev1.TaintEffectNoExecute), plans(launch("small", "z1", "a")), plans(blue("small"))},
		{"a preference is no requirement", planvalidator.Taints, prefer, plans(blue("small"), launch("small", "z1", "b")), plans(blue("small"), inPool("tainted", launch("small", "z1", "b")))},
		{"the same port", planvalidator.HostPorts, of(pod("a", binds("", 80, "")), pod("b", binds("", 80, "TCP"))), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"))},
		{"every address", planvalidator.HostPorts, of(pod("a", binds("10.0.0.1", 80, "TCP")), pod("b", binds("0.0.0.0", 80, "TCP"))), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"))},
		{"every address of the newer kind", planvalidator.HostPorts, of(pod("a", binds("10.0.0.1", 80, "TCP")), pod("b", binds("::", 80, "TCP"))), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"))},
		{
			"other addresses, protocols and ports", planvalidator.HostPorts,
			of(pod("a", binds("10.0.0.1", 80, "TCP")), pod("b", binds("10.0.0.2", 80, "TCP")), pod("c", binds("10.0.0.1", 80, "UDP")), pod("d", binds("10.0.0.1", 81, "TCP"))),
			plans(launch("large", "z1", "a", "b", "c", "d")),
			func(s *planvalidator.Scenario) *planvalidator.Result {
				s.Pods[1].Spec.Containers[0].Ports[0].HostIP = "10.0.0.1"
				return planned(s, launch("large", "z1", "a", "b", "c", "d"))
			},
		},
		{
			"a daemon's port", planvalidator.HostPorts,
			altered(func(s *planvalidator.Scenario) { binds("", 80, "")(&s.DaemonSetPods[0]) }, pod("a", binds("", 80, ""), tolerates("blue"))),
			plans(blue("small")), plans(launch("small", "z1", "a")),
		},
		{"a sidecar's port", planvalidator.HostPorts, of(pod("a", binds("", 80, "")), pod("b", sidecar("1m", corev1.ContainerPort{HostPort: 80}))), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"))},
		{
			"an old node's port", planvalidator.HostPorts,
			altered(func(s *planvalidator.Scenario) { existing(s, "old", "large", "z1", pod("there", binds("", 80, ""))) }, pod("a", binds("", 81, "")), pod("b", binds("", 80, ""))),
			changed(func(r *planvalidator.Result) { join(r, "old", "a") }, launch("small", "z1", "b")), toOld("a", "b"),
		},
	}
}
