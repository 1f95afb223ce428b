package live

import (
	"cmp"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// zoneRegion matches the region at the begin of a zone's name, such as eu-west-1a or us-west-2-lax-1a.
var zoneRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+`)

// providerZone matches the zone in a node's provider ID, aws:///eu-west-1a/i-0123.
var providerZone = regexp.MustCompile(`^aws:///([^/]+)/`)

// clusterARN matches the ARN that aws eks update-kubeconfig gives a cluster as its name.
var clusterARN = regexp.MustCompile(`^arn:[^:]+:eks:([^:]+):[0-9]*:cluster/(.+)$`)

// endpointRegion matches the region in the address of an EKS cluster.
var endpointRegion = regexp.MustCompile(`\.([a-z0-9-]+)\.eks\.amazonaws\.com`)

// NewRunningCluster returns the cluster of a kubeconfig with its name there and its address, in which
// EKS has the region.
func NewRunningCluster(reader PageReader, name, address string) RunningCluster {
	out := RunningCluster{PageReader: reader, Name: name}
	if found := endpointRegion.FindStringSubmatch(address); found != nil {
		out.Region = found[1]
	}
	if found := clusterARN.FindStringSubmatch(name); found != nil {
		out.Region, out.Name = found[1], found[2]
	}
	return out
}

// Region returns the region of most nodes, from their labels or else from their provider IDs. It is ""
// if no node has one.
func (s ClusterContent) Region() string {
	counts := map[string]int{}
	for _, node := range cluster.ListCached[*corev1.Node](s.Feed, cluster.Nodes) {
		if region := regionOf(node); region != "" {
			counts[region]++
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func regionOf(node *corev1.Node) string {
	if region := node.Labels[corev1.LabelTopologyRegion]; region != "" {
		return region
	}
	if zone := providerZone.FindStringSubmatch(node.Spec.ProviderID); zone != nil {
		return zoneRegion.FindString(zone[1])
	}
	return ""
}
