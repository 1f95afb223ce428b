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

// deferredReason is why a pod that is not parked is not in a batch.
const deferredReason = "batches get no plan, and its turn comes while the pods are looked for that are the cause"

// HashClass is the hash of a class. Pods that planning cannot tell apart have the
// same, for as long as no new selector tells them apart.
func HashClass(spec planning.PodSpec) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(podspec.Key(spec)))
	return hash.Sum64()
}

// HashClasses are the hashes of the classes in order.
func HashClasses(pending []planning.PodClass) []uint64 {
	var out []uint64
	for i := range pending {
		out = append(out, HashClass(pending[i].Spec))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Selection is what is left of the pods that wait.
type Selection struct {
	// Pending are the classes of the batch, Deferred those whose turn has not come, and
	// Parked those that are left out, with the ends of that.
	Pending, Deferred, Parked []planning.PodClass
	Until                     []time.Time
}

// SelectClasses takes the classes that wait apart.
func SelectClasses(h outbox.Hunt, pending []planning.PodClass) Selection {
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

// IgnoredPods is what the batch says of the pods that it does not have.
func (c Selection) IgnoredPods() []planning.Ignored {
	var out []planning.Ignored
	for i, class := range c.Parked {
		out = appendIgnored(out, class, ParkedReason(c.Until[i]))
	}
	for _, class := range c.Deferred {
		out = appendIgnored(out, class, deferredReason)
	}
	return out
}

// ParkedReason is why a parked pod is not in a batch.
func ParkedReason(until time.Time) string {
	return "every batch with this pod fails: no plan comes, or its NodeClaims cannot be created; the pod is left out until " + until.UTC().Format(time.RFC3339)
}

func appendIgnored(list []planning.Ignored, class planning.PodClass, reason string) []planning.Ignored {
	pods := slices.DeleteFunc(slices.Clone(class.Pods), func(p planning.PodRef) bool { return p.Buffer != "" })
	if len(pods) == 0 {
		return list
	}
	return append(list, planning.Ignored{Namespace: class.Spec.Namespace, Reason: reason, Pods: pods})
}

// ReserveCapacity takes from nodes that are still to come what the pods need that each
// was made for and that are not in the batch: it is their room, and planned anew
// it would have to be bought again for them.
func (c Selection) ReserveCapacity(nodes []planning.Node) []planning.Node {
	away := map[string]*planning.PodSpec{}
	for _, classes := range [][]planning.PodClass{c.Deferred, c.Parked} {
		for i := range classes {
			for _, pod := range classes[i].Pods {
				away[pod.UID] = &classes[i].Spec
			}
		}
	}
	if len(away) == 0 {
		return nodes
	}
	out := slices.Clone(nodes)
	for i := range out {
		reserveOnNode(&out[i], away)
	}
	return out
}

func reserveOnNode(node *planning.Node, away map[string]*planning.PodSpec) {
	var used corev1.ResourceList
	for _, uid := range node.Expected {
		spec := away[uid]
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
