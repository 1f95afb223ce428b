package podspec

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// Requests is what a pod takes from its node: the larger of its init containers
// and its containers, sidecars and overhead included, and one of the node's pods.
// While it is resized in place it is the most of what was and what will
// be. Equal amounts come out in one spelling.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	var scratch amounts
	scratch.read(pod)
	return scratch.list()
}

// amount is how much of one resource a pod asks for.
type amount struct {
	name  corev1.ResourceName
	total resource.Quantity
}

// amounts are ordered by name once they are read. They serve again for the next
// pod, so that reading costs no memory: batches have thousands of pods.
type amounts []amount

// read replaces the amounts by those of a pod.
func (a *amounts) read(pod *corev1.Pod) {
	*a = (*a)[:0]
	if onlyContainers(pod) {
		for i := range pod.Spec.Containers {
			a.addAll(pod.Spec.Containers[i].Resources.Requests)
		}
	} else {
		a.addAll(helpers.PodRequests(pod, helpers.PodResourcesOptions{
			UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
		}))
	}
	*a = slices.DeleteFunc(*a, func(one amount) bool { return one.total.IsZero() })
	a.add(corev1.ResourcePods, *resource.NewQuantity(1, resource.DecimalSI))
	a.sort()
}

// readList replaces the amounts by those of a list.
func (a *amounts) readList(list corev1.ResourceList) {
	*a = (*a)[:0]
	a.addAll(list)
	a.sort()
}

// onlyContainers reports that a pod's requests are the sum of its containers',
// which most pods' are. The rest have rules that the library knows.
func onlyContainers(pod *corev1.Pod) bool {
	spec, status := &pod.Spec, &pod.Status
	return len(spec.InitContainers) == 0 && len(spec.Overhead) == 0 && spec.Resources == nil &&
		len(status.ContainerStatuses) == 0 && len(status.InitContainerStatuses) == 0 &&
		status.Resources == nil && status.AllocatedResources == nil && !helpers.IsPodResizeInfeasible(pod)
}

func (a *amounts) addAll(list corev1.ResourceList) {
	for name, quantity := range list {
		a.add(name, quantity)
	}
}

func (a *amounts) add(name corev1.ResourceName, quantity resource.Quantity) {
	for i := range *a {
		if (*a)[i].name == name {
			(*a)[i].total.Add(quantity)
			return
		}
	}
	*a = append(*a, amount{name, quantity})
}

func (a amounts) sort() {
	slices.SortFunc(a, func(x, y amount) int { return cmp.Compare(x.name, y.name) })
}

// list is the amounts as planning reads them.
func (a amounts) list() corev1.ResourceList {
	out := make(corev1.ResourceList, len(a))
	for i := range a {
		out[a[i].name] = a[i].canonical()
	}
	return out
}

// canonical is the one spelling of the amount.
func (a *amount) canonical() resource.Quantity {
	switch a.name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(a.units(), resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(a.units(), resource.BinarySI)
	default:
		return *resource.NewQuantity(a.units(), resource.DecimalSI)
	}
}

// units is the amount in thousandths of a core, or in whole units of anything
// else. What is too large for that stays too large for any node: the library's
// own conversion would make nothing of 1e30.
func (a *amount) units() int64 {
	size, milli := a.total.AsApproximateFloat64(), a.name == corev1.ResourceCPU
	if milli {
		size *= 1000
	}
	switch {
	case size >= math.MaxInt64:
		return math.MaxInt64
	case size <= math.MinInt64:
		return math.MinInt64
	case milli:
		return a.total.MilliValue()
	default:
		return a.total.Value()
	}
}

// hostPorts adds those of ordinary containers to out; init containers are gone
// before anything could clash.
func hostPorts(containers []corev1.Container, out []planning.HostPort) []planning.HostPort {
	for i := range containers {
		for _, port := range containers[i].Ports {
			if port.HostPort != 0 {
				out = append(out, planning.HostPort{IP: port.HostIP, Port: port.HostPort, Protocol: port.Protocol})
			}
		}
	}
	return out
}
