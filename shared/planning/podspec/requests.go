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

// Requests returns what a pod takes of its node: the larger of its init containers and its containers,
// including sidecars and overhead, and one of resource pods. During an in-place resize it is the
// larger of the old and the new amount. Equal amounts have the same format.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	var scratch amounts
	scratch.read(pod)
	return scratch.list()
}

// amount is the request for one resource.
type amount struct {
	name  corev1.ResourceName
	total resource.Quantity
}

// amounts are sorted by name once read. They are reused for the next pod, so that reading allocates
// nothing: batches have thousands of pods.
type amounts []amount

// read sets the amounts from a pod.
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

// readList sets the amounts from a list.
func (a *amounts) readList(list corev1.ResourceList) {
	*a = (*a)[:0]
	a.addAll(list)
	a.sort()
}

// onlyContainers reports whether a pod's requests are the sum of its containers' requests, as for most
// pods. The library handles the others.
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

// list returns the amounts as a ResourceList.
func (a amounts) list() corev1.ResourceList {
	out := make(corev1.ResourceList, len(a))
	for i := range a {
		out[a[i].name] = a[i].canonical()
	}
	return out
}

// canonical returns the amount in its standard format.
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

// units returns the amount in millicores, or in whole units of other resources. It saturates, because
// the library's conversion would turn 1e30 into 0.
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

// appendHostPorts appends the host ports of sidecars and containers, which run at the same time as other
// pods' (kube-scheduler: pkg/scheduler/util/utils.go, GetHostPorts). Other init containers are ignored:
// they have ended before a conflict is possible.
func appendHostPorts(out []planning.HostPort, spec *corev1.PodSpec) []planning.HostPort {
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; isSidecar(c) {
			out = appendContainerPorts(out, c)
		}
	}
	for i := range spec.Containers {
		out = appendContainerPorts(out, &spec.Containers[i])
	}
	return out
}

func appendContainerPorts(out []planning.HostPort, c *corev1.Container) []planning.HostPort {
	for _, port := range c.Ports {
		if port.HostPort != 0 {
			out = append(out, planning.HostPort{IP: port.HostIP, Port: port.HostPort, Protocol: port.Protocol})
		}
	}
	return out
}

// isSidecar reports whether an init container keeps running next to the containers.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
