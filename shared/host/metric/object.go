package metric

import "slices"

// nodeLabels are the labels of Karpenter's metrics of nodes: the last parts of the well-known labels, and three of its own
// (Karpenter: pkg/controllers/metrics/node/controller.go). A label that the node does not have is empty.
var nodeLabels = func() []Label {
	var out []Label
	for _, name := range NodeLabels {
		out = append(out, Label{Name: name, Help: "the node's label", Max: 1, Bare: true})
	}
	return append(out,
		Label{Name: "node_name", Help: "the name of the node", Max: 1, Bare: true}, Label{Name: "phase", Help: "always empty: kubelet does not write it", Max: 1, Bare: true},
		Label{Name: "managed", Help: "true if the node belongs to a NodePool", Max: 1})
}()

// NodeLabels are the names in Prometheus of the well-known labels of nodes.
var NodeLabels = []string{
	"arch", "capacity_reservation_id", "capacity_reservation_interruptible", "capacity_reservation_type", "capacity_type", "instance_accelerator_count", "instance_accelerator_manufacturer",
	"instance_accelerator_name", "instance_capability_flex", "instance_category", "instance_cpu", "instance_cpu_manufacturer", "instance_cpu_sustained_clock_speed_mhz",
	"instance_ebs_bandwidth", "instance_encryption_in_transit_supported", "instance_family", "instance_generation", "instance_gpu_count", "instance_gpu_manufacturer", "instance_gpu_memory",
	"instance_gpu_name", "instance_hypervisor", "instance_local_nvme", "instance_memory", "instance_network_bandwidth", "instance_size", "instance_tenancy", "instance_type", "nodepool", "os",
	"placement_group_id", "placement_group_partition", "region", "windows_build", "zone", "zone_id",
}

var nodeResourceLabels = append(slices.Clip(nodeLabels), labelResource)

var podLabels = func() []Label {
	var out []Label
	for _, label := range [][2]string{
		{"name", "the name of the pod"}, {"namespace", "its namespace"}, {"owner", "the path of its first owner"}, {"node", "its node; empty while it has none"},
		{"scheduled", "true if it has a node"}, {"nodepool", "the NodePool of the node"}, {"zone", "the zone of the node"}, {"arch", "the architecture of the node"},
		{"capacity_type", "the capacity type of the node"}, {"instance_type", "the instance type of the node"}, {"phase", "the phase of the pod"}, {"ready", "true if the pod is ready"},
		{"managed", "true if the node belongs to a NodePool"},
	} {
		out = append(out, Label{Name: label[0], Help: label[1], Max: 1, Bare: true})
	}
	return out
}()

// Nodes and pods, as the watcher's cache has them at each scrape.
var (
	NodeAllocatable = Metric{
		Name: "karpenter_nodes_allocatable", Kind: Gauge, Unit: "1", PerObject: true,
		Help:   "Allocatable resources of a node, in Kubernetes units, without those of which it has none.",
		Labels: nodeResourceLabels, Services: []string{"watcher"},
	}
	NodePodRequests = Metric{
		Name: "karpenter_nodes_total_pod_requests", Kind: Gauge, Unit: "1", PerObject: true,
		Help:   "Resources that the pods on a node request, including those of DaemonSets, in Kubernetes units.",
		Labels: nodeResourceLabels, Services: []string{"watcher"},
	}
	NodeDaemonRequests = Metric{
		Name: "karpenter_nodes_total_daemon_requests", Kind: Gauge, Unit: "1", PerObject: true,
		Help:   "Resources that the pods of DaemonSets on a node request, in Kubernetes units.",
		Labels: nodeResourceLabels, Services: []string{"watcher"},
	}
	NodeOverhead = Metric{
		Name: "karpenter_nodes_system_overhead", Kind: Gauge, Unit: "1", PerObject: true,
		Help:   "Capacity of a node minus its allocatable resources, in Kubernetes units, without those of which it has none.",
		Labels: nodeResourceLabels, Services: []string{"watcher"},
	}
	NodeLifetime = Metric{
		Name: "karpenter_nodes_current_lifetime_seconds", Kind: Gauge, Unit: "s", PerObject: true,
		Help:   "Age of a node.",
		Labels: nodeLabels, Services: []string{"watcher"},
	}
	ClusterUtilization = Metric{
		Name: "karpenter_cluster_utilization_percent", Kind: Gauge, Unit: "%", PerObject: true,
		Help:   "Share of the allocatable resources of all nodes that pods request, in per cent.",
		Labels: []Label{labelResource}, Services: []string{"watcher"},
	}
	PodState = Metric{
		Name: "karpenter_pods_state", Kind: Gauge, Unit: "1", PerObject: true,
		Help:   "1 for each pod, with its state in the labels.",
		Labels: podLabels, Services: []string{"watcher"},
	}
)

// objectMetrics have a series for each node or pod. They are computed when Prometheus scrapes, and nothing of them is kept.
var objectMetrics = []Metric{NodeAllocatable, NodePodRequests, NodeDaemonRequests, NodeOverhead, NodeLifetime, ClusterUtilization, PodState}

// ObjectValue is a value of one object's series.
type ObjectValue struct {
	Metric Metric
	// Resource is the value of the label resource_type; "" for metrics without it.
	Resource string
	Value    float64
}

// ObjectRecorder takes the values of one object. labels are the values of the metrics' labels in the order of the catalogue,
// without resource_type; all metrics of one call have the same.
type ObjectRecorder func(labels []string, values []ObjectValue)
