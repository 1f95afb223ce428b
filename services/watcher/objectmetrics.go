package watcher

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// A scrape holds all its series in memory: about 12 KB for a node and 1.3 KB for a pod. Larger clusters have no series for each node or
// pod, because the watcher's memory is sized for planning 5,000 nodes and 100,000 pods.
const (
	maxNodeSeries = 2_000
	maxPodSeries  = 20_000
)

// CollectObjects computes the metrics of nodes and pods from the cache, if this replica leads. It is safe to call at any time,
// also during a Step.
func (s *Service) CollectObjects(record metric.ObjectRecorder) {
	if !s.leading.Load() || !s.Cache.Synced() {
		return
	}
	nodes := map[string]*corev1.Node{}
	for _, node := range cluster.ListCached[*corev1.Node](s.Cache, cluster.Nodes) {
		nodes[node.Name] = node
	}
	used, pods := map[string]*nodeUse{}, cluster.ListCached[*corev1.Pod](s.Cache, cluster.Pods)
	for _, pod := range pods {
		node := nodes[pod.Spec.NodeName]
		if len(pods) <= maxPodSeries {
			record(podStateLabels(pod, node), []metric.ObjectValue{{Metric: metric.PodState, Value: 1}})
		}
		if node == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if used[node.Name] == nil {
			used[node.Name] = &nodeUse{all: amounts{}, daemons: amounts{}}
		}
		used[node.Name].addPod(pod)
	}
	now, allocatable, requested := s.Now(), amounts{}, amounts{}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		use := cmp.Or(used[name], &nodeUse{})
		if len(nodes) <= maxNodeSeries {
			record(nodeLabelValues(nodes[name]), use.values(nodes[name], now))
		}
		allocatable.add(nodes[name].Status.Allocatable)
		for resource, amount := range use.all {
			requested[resource] += amount
		}
	}
	var utilization []metric.ObjectValue
	for _, resource := range slices.Sorted(maps.Keys(allocatable)) {
		if allocatable[resource] > 0 {
			share := 100 * float64(requested[resource]) / float64(allocatable[resource])
			utilization = append(utilization, metric.ObjectValue{Metric: metric.ClusterUtilization, Resource: karpenter.MetricResource(resource), Value: share})
		}
	}
	record(nil, utilization)
}

// amounts are amounts of resources: thousandths of cores of cpu, and otherwise bytes or pieces.
type amounts map[corev1.ResourceName]int64

func (a amounts) add(list corev1.ResourceList) {
	for name, q := range list {
		if name == corev1.ResourceCPU {
			a[name] += q.MilliValue()
		} else {
			a[name] += q.Value()
		}
	}
}

// inUnits returns an amount in Kubernetes units.
func (a amounts) inUnits(name corev1.ResourceName) float64 {
	if name == corev1.ResourceCPU {
		return float64(a[name]) / 1000
	}
	return float64(a[name])
}

// nodeUse is what the pods on a node request.
type nodeUse struct{ all, daemons amounts }

func (u *nodeUse) addPod(pod *corev1.Pod) {
	requests := podspec.Requests(pod)
	u.all.add(requests)
	if podspec.OwnedBy(pod, "DaemonSet") {
		u.daemons.add(requests)
	}
}

// values returns the values of a node.
func (u *nodeUse) values(node *corev1.Node, now time.Time) []metric.ObjectValue {
	out := []metric.ObjectValue{{Metric: metric.NodeLifetime, Value: now.Sub(node.CreationTimestamp.Time).Seconds()}}
	allocatable, overhead := amounts{}, amounts{}
	allocatable.add(node.Status.Allocatable)
	overhead.add(node.Status.Capacity)
	for name := range overhead {
		overhead[name] -= allocatable[name]
	}
	for _, one := range []struct {
		metric metric.Metric
		of     amounts
	}{{metric.NodeAllocatable, allocatable}, {metric.NodeOverhead, overhead}, {metric.NodePodRequests, u.all}, {metric.NodeDaemonRequests, u.daemons}} {
		for _, name := range slices.Sorted(maps.Keys(one.of)) {
			if one.of[name] != 0 {
				out = append(out, metric.ObjectValue{Metric: one.metric, Resource: karpenter.MetricResource(name), Value: one.of.inUnits(name)})
			}
		}
	}
	return out
}

// wellKnownOf are the keys of the labels in metric.NodeLabels.
var wellKnownOf = func() map[string]string {
	out := map[string]string{}
	for _, key := range karpenter.WellKnownLabels() {
		if _, name, ok := strings.Cut(key, "/"); ok {
			out[strings.ReplaceAll(strings.ToLower(name), "-", "_")] = key
		}
	}
	return out
}()

// nodeLabelValues returns the labels of a node in the order of the catalogue.
func nodeLabelValues(node *corev1.Node) []string {
	out := make([]string, 0, len(metric.NodeLabels)+3)
	for _, name := range metric.NodeLabels {
		out = append(out, node.Labels[wellKnownOf[name]])
	}
	return append(out, node.Name, "", strconv.FormatBool(node.Labels[karpenter.NodePoolLabelKey] != ""))
}

// podStateLabels returns the labels of a pod in the order of the catalogue. The cached pods have the condition Ready only if it is
// False.
func podStateLabels(pod *corev1.Pod, node *corev1.Node) []string {
	labels := map[string]string{}
	if node != nil {
		labels = node.Labels
	}
	unready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
	owner := ""
	if len(pod.OwnerReferences) > 0 {
		of := &pod.OwnerReferences[0]
		owner = fmt.Sprintf("/apis/%s/namespaces/%s/%ss/%s", of.APIVersion, pod.Namespace, strings.ToLower(of.Kind), of.Name)
	}
	pool := labels[karpenter.NodePoolLabelKey]
	return []string{
		pod.Name, pod.Namespace, owner, pod.Spec.NodeName, strconv.FormatBool(pod.Spec.NodeName != ""), pool, labels[corev1.LabelTopologyZone], labels[corev1.LabelArchStable],
		labels[karpenter.CapacityTypeLabelKey], labels[corev1.LabelInstanceTypeStable], string(pod.Status.Phase), strconv.FormatBool(pod.Status.Phase == corev1.PodRunning && !unready), strconv.FormatBool(pool != ""),
	}
}
