package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// MaxSpec is the maximum size of the part of a pod that planning reads, in bytes. The API server
// accepts objects of 1.5 MiB, and documents contain the specs of all pods: without a maximum, a few
// pods of one namespace would make documents too large to store.
const MaxSpec = 32 << 10

// TooLarge is the reason why a pod with a spec larger than MaxSpec is ignored.
var TooLarge = fmt.Sprintf("its labels, resources, selectors, affinity, tolerations, topology constraints and resource claims have more than %d KiB: "+
	"select nodes and pods by fewer values", MaxSpec>>10)

// Oversize reports whether a spec is larger than MaxSpec.
func Oversize(spec planning.PodSpec) bool { return len(Key(spec)) > MaxSpec }

// fix reduces the draft of a running pod to its requests and anti-affinity. Without its other
// constraints the pod must not be moved.
func (d *draft) fix() {
	d.spec.NodeSelector, d.spec.Tolerations, d.spec.Spread, d.spec.Claims = nil, nil, nil, nil
	d.spec.DoNotDisrupt, d.spec.DeletionCost = "true", ""
	d.requests = slices.DeleteFunc(d.requests, func(a amount) bool { return a.units() == 0 })
	if affinity := d.spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		d.spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}}
	} else {
		d.spec.Affinity = nil
	}
}

// strip reduces the draft further, to the requests.
func (d *draft) strip() { d.spec.Affinity, d.labels = nil, nil }
