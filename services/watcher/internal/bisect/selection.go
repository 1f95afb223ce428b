package bisect

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// deferredReason is the reason why a pod that is not parked is left out of a batch.
const deferredReason = "batches get no plan; this pod is in a later batch while Joist searches for the pods that cause the failure"

// HashClass returns the hash of a class. It is the same for pods that planning cannot distinguish,
// until a new selector distinguishes them.
func HashClass(spec planning.PodSpec) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(podspec.Key(spec)))
	return hash.Sum64()
}

// HashClasses returns the sorted hashes of the classes without duplicates.
func HashClasses(pending []planning.PodClass) []uint64 {
	var out []uint64
	for i := range pending {
		out = append(out, HashClass(pending[i].Spec))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Selection divides the pending classes for the next batch.
type Selection struct {
	// Pending are the classes in the batch. Deferred are the classes of later batches. Parked are
	// the classes that are left out, each until the time at the same index of Until.
	Pending, Deferred, Parked []planning.PodClass
	Until                     []time.Time
}

// SelectClasses selects the classes of the next batch.
func SelectClasses(h outbox.Bisection, pending []planning.PodClass) Selection {
	if !IsActive(h) && len(h.Parked) == 0 {
		return Selection{Pending: pending}
	}
	var out Selection
	for _, class := range pending {
		hash := HashClass(class.Spec)
		if until, parked := ParkedUntil(h, hash); parked {
			out.Parked, out.Until = append(out.Parked, class), append(out.Until, until)
		} else if IncludesClass(h, hash) {
			out.Pending = append(out.Pending, class)
		} else {
			out.Deferred = append(out.Deferred, class)
		}
	}
	return out
}

// IgnoredPods returns the pods that are left out of the batch, with the reason.
func (c Selection) IgnoredPods() []planning.IgnoredPods {
	var out []planning.IgnoredPods
	for i, class := range c.Parked {
		out = appendIgnored(out, class, ParkedReason(c.Until[i]))
	}
	for _, class := range c.Deferred {
		out = appendIgnored(out, class, deferredReason)
	}
	return out
}

// ParkedReason returns the reason why a parked pod is left out of batches.
func ParkedReason(until time.Time) string {
	return "every batch with this pod fails: it gets no plan, or its NodeClaims cannot be created; the pod is left out until " + until.UTC().Format(time.RFC3339)
}

func appendIgnored(list []planning.IgnoredPods, class planning.PodClass, reason string) []planning.IgnoredPods {
	pods := slices.DeleteFunc(slices.Clone(class.Pods), func(p planning.PodRef) bool { return p.Buffer != "" })
	if len(pods) == 0 {
		return list
	}
	return append(list, planning.IgnoredPods{Namespace: class.Spec.Namespace, Reason: reason, Pods: pods})
}

// ReserveCapacity reserves capacity on nodes that have not joined, for pods that each node was
// launched for and that are not in the batch. Otherwise the planner would assign that capacity to
// other pods and launch more nodes for these.
func (c Selection) ReserveCapacity(nodes []planning.Node) []planning.Node {
	leftOut := map[string]*planning.PodSpec{}
	for _, classes := range [][]planning.PodClass{c.Deferred, c.Parked} {
		for i := range classes {
			for _, pod := range classes[i].Pods {
				leftOut[pod.UID] = &classes[i].Spec
			}
		}
	}
	if len(leftOut) == 0 {
		return nodes
	}
	out := slices.Clone(nodes)
	for i := range out {
		reserveOnNode(&out[i], leftOut)
	}
	return out
}

func reserveOnNode(node *planning.Node, leftOut map[string]*planning.PodSpec) {
	var used corev1.ResourceList
	for _, uid := range node.ExpectedPods {
		spec := leftOut[uid]
		if spec == nil {
			continue
		}
		if used == nil {
			if used = maps.Clone(node.Used); used == nil {
				used = corev1.ResourceList{}
			}
		}
		for name, quantity := range spec.Requests {
			total := used[name].DeepCopy()
			total.Add(quantity)
			used[name] = total
		}
	}
	if used != nil {
		node.Used = used
	}
}
