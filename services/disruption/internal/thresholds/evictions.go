package thresholds

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// evictionWindow is the period of the limit.
const evictionWindow = time.Hour

// workload is the owner of pods: a Deployment, a StatefulSet, a Job. A pod without an owner is a
// workload of its own.
type workload struct{ namespace, kind, name string }

func workloadOf(spec *planning.PodSpec, pod *planning.PodRef) workload {
	if pod.Workload == "" {
		return workload{spec.Namespace, spec.OwnerKind, pod.Name}
	}
	return workload{spec.Namespace, spec.OwnerKind, pod.Workload}
}

func (w workload) String() string { return w.namespace + "/" + w.name }

// moveCounts counts for each workload its pods, and the pods that were moved within the last hour
// or are about to be.
//
// An evicted pod no longer exists, but its successor was created at that moment. So each pod
// younger than an hour counts as one move, whether it was evicted or not: rollouts and scale-ups
// count too. Moving such a pod would leave one young pod for two moves, so it may not be moved.
// Then each eviction of the last hour has left one young pod, and it is enough to count those. An
// evicted pod that still exists counts by itself if its successor is created only after its
// deletion.
//
// So no state has to be stored, and the hour begins with the eviction, regardless of the drain's
// duration. The count errs towards too many, except for pods that a snapshot does not contain. For
// these another pod of the workload may move:
//   - A moved pod that has ended, or was scaled down, is not in the snapshot.
//   - Neither is one whose controller delays its successor, such as a Job that backs off after
//     failures.
//   - A pod on no node is in the snapshot only while Joist plans it: not if it is gated, preempts
//     others, is ignored by Joist, or is not marked unschedulable yet.
//
// TestNoHourMovesMore simulates this, with pods that end or are scaled down.
type moveCounts struct{ pods, moved map[workload]int }

func countRecentMoves(s *planning.Snapshot) *moveCounts {
	m := &moveCounts{pods: map[workload]int{}, moved: map[workload]int{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for k := range n.Pods {
			m.addClass(&n.Pods[k], s.TakenAt, n.MarkedForDeletion)
		}
	}
	for i := range s.PendingPods {
		m.addPending(&s.PendingPods[i], s.TakenAt)
	}
	return m
}

// addPending counts the pods of a class that are on no node. Pods on nodes that are being removed
// are counted with their nodes.
func (m *moveCounts) addPending(class *planning.PodClass, now time.Time) {
	isOnNode := func(pod planning.PodRef) bool { return pod.Node != "" || pod.Buffer != "" }
	m.addClass(&planning.PodClass{Spec: class.Spec, Pods: slices.DeleteFunc(slices.Clone(class.Pods), isOnNode)}, now, false)
}

// addClass counts the pods of a class; leaves reports that their node is being removed.
func (m *moveCounts) addClass(class *planning.PodClass, now time.Time, leaves bool) {
	for i := range class.Pods {
		pod := &class.Pods[i]
		w := workloadOf(&class.Spec, pod)
		if !pod.Terminating || class.Spec.OwnerKind == "StatefulSet" {
			m.pods[w]++
		}
		if pod.Terminating && isReplacedLate(class.Spec.OwnerKind) || !pod.Terminating && (leaves || isYoung(pod, now)) {
			m.moved[w]++
		}
	}
}

// isReplacedLate reports whether a pod's successor may be created only after the pod's deletion is
// complete, not when it begins: a StatefulSet waits for the name, and a Job may be configured to
// wait. If the successor is created at once, both pods count for a while.
func isReplacedLate(owner string) bool {
	return owner != "ReplicaSet" && owner != "ReplicationController"
}

func isYoung(pod *planning.PodRef, now time.Time) bool {
	return !pod.Created.IsZero() && now.Before(pod.Created.Add(evictionWindow))
}

// podsByWorkload counts for each workload the pods that would be moved from the nodes.
func podsByWorkload(nodes ...*candidate.Candidate) map[workload]int {
	out := map[workload]int{}
	for _, c := range nodes {
		for i := range c.Node.Pods {
			class := &c.Node.Pods[i]
			for k := range class.Pods {
				if !class.Pods[k].Terminating {
					out[workloadOf(&class.Spec, &class.Pods[k])]++
				}
			}
		}
	}
	return out
}

// checkEvictions returns the objection to moving the pods of a single node, because of recent
// moves.
func (r Thresholds) checkEvictions(c *candidate.Candidate, limit policy.Share) candidate.Objection {
	if !limit.IsSet() {
		return candidate.Objection{}
	}
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		for k := range class.Pods {
			if pod := &class.Pods[k]; !pod.Terminating && isYoung(pod, r.now) {
				return candidate.Objection{Rule: RuleEvictions, Detail: fmt.Sprintf("pod %s/%s was created %s ago; with %s no pod is moved twice in an hour",
					class.Spec.Namespace, pod.Name, r.ageOf(pod.Created), policy.EvictionsPerHour)}
			}
		}
	}
	return r.moves.firstExceeded(podsByWorkload(c), c, limit)
}

// CheckSet returns the objection to removing the nodes together because of recent moves, including
// moves of earlier commands, and the nodes without which the others could be removed.
func (r Thresholds) CheckSet(nodes []*candidate.Candidate) (candidate.Objection, []*candidate.Candidate) {
	var first candidate.Objection
	var retryWithout []*candidate.Candidate
	if r.moves == nil {
		return first, nil
	}
	var fit []*candidate.Candidate
	for _, c := range nodes {
		no := r.checkTogether(append(fit, c))
		if no.IsNone() {
			fit = append(fit, c)
			continue
		}
		if retryWithout = append(retryWithout, c); first.IsNone() {
			first = no
		}
	}
	return first, retryWithout
}

// checkTogether checks the limit of each node's NodePool for all of the nodes.
func (r Thresholds) checkTogether(nodes []*candidate.Candidate) candidate.Objection {
	sum := podsByWorkload(nodes...)
	for _, c := range nodes {
		if limit := r.policies[c.Node.NodePool].EvictionsPerHour; limit.IsSet() {
			if no := r.moves.firstExceeded(sum, c, limit); !no.IsNone() {
				return no
			}
		}
	}
	return candidate.Objection{}
}

// firstExceeded objects to the first workload of the node of which too many pods would move.
func (m *moveCounts) firstExceeded(sum map[workload]int, c *candidate.Candidate, limit policy.Share) candidate.Objection {
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		for k := range class.Pods {
			if class.Pods[k].Terminating {
				continue
			}
			w := workloadOf(&class.Spec, &class.Pods[k])
			if most := limit.CountOf(m.pods[w]); m.moved[w]+sum[w] > most {
				return candidate.Objection{Rule: RuleEvictions, Detail: fmt.Sprintf("%d pods of %s would move after %d within the hour; %s allows %d of its %d",
					sum[w], w, m.moved[w], policy.EvictionsPerHour, most, m.pods[w])}
			}
		}
	}
	return candidate.Objection{}
}

// AddMoves counts the pods of nodes that are being removed.
func (r Thresholds) AddMoves(nodes []*candidate.Candidate) {
	if r.moves == nil {
		return
	}
	for w, count := range podsByWorkload(nodes...) {
		r.moves.moved[w] += count
	}
}
