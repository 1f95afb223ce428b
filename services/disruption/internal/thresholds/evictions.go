package thresholds

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// evictionWindow is the hour of the limit.
const evictionWindow = time.Hour

// workload is what keeps pods in number: a Deployment, a StatefulSet, a Job. A pod
// that nobody keeps is one of its own.
type workload struct{ namespace, kind, name string }

func workloadOf(spec *planning.PodSpec, pod *planning.PodRef) workload {
	if pod.Workload == "" {
		return workload{spec.Namespace, spec.OwnerKind, pod.Name}
	}
	return workload{spec.Namespace, spec.OwnerKind, pod.Workload}
}

func (w workload) String() string { return w.namespace + "/" + w.name }

// moveCounts are how many pods each workload has, and how many of them were moved within
// the last hour or are about to be.
//
// A pod that was evicted is not there any more; the one in its place is, and was
// created at that moment. So each pod that is younger than an hour counts as one
// move, whatever made it: a rollout and a larger number of replicas count, too. And as
// moving such a pod leaves one that counts once again, and not twice, it may not be
// moved: then each eviction of the last hour has left a young pod of its own, and those
// are counted. A pod that is evicted and not gone yet counts by itself where another may
// come later than it goes.
//
// So nothing has to be remembered, by anybody who could die, and the hour begins with the
// eviction, however long it was waited for. It errs to the safe side but for what is not
// seen, so that another pod of the workload may move:
//
//   - A pod that was moved and then ended, or was not wanted any more, has left no trace.
//   - Nor has one whose successor a controller holds back, such as a Job that was told to
//     wait after failures.
//   - A pod on no node is in the snapshot only while it waits for Joist: not one that is
//     gated, that preempts others, that Joist makes no room for, or of which the scheduler
//     has not said that it is unschedulable.
//
// TestNoHourMovesMore plays it, with pods that end or are not wanted any more.
type moveCounts struct{ pods, moved map[workload]int }

func countRecentMoves(s *planning.Snapshot) *moveCounts {
	m := &moveCounts{pods: map[workload]int{}, moved: map[workload]int{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for k := range n.Pods {
			m.addClass(&n.Pods[k], s.Taken, n.Going)
		}
	}
	for i := range s.Waiting {
		m.addPending(&s.Waiting[i], s.Taken)
	}
	return m
}

// addPending counts the pods of a class that are on no node yet; those that wait on one
// that goes are counted there.
func (m *moveCounts) addPending(class *planning.PodClass, now time.Time) {
	on := func(pod planning.PodRef) bool { return pod.Node != "" || pod.Buffer != "" }
	m.addClass(&planning.PodClass{Spec: class.Spec, Pods: slices.DeleteFunc(slices.Clone(class.Pods), on)}, now, false)
}

// addClass counts the pods of a class, of a node that stays or one that leaves.
func (m *moveCounts) addClass(class *planning.PodClass, now time.Time, leaves bool) {
	for i := range class.Pods {
		pod := &class.Pods[i]
		w := workloadOf(&class.Spec, pod)
		if !pod.Going || class.Spec.OwnerKind == "StatefulSet" {
			m.pods[w]++
		}
		if pod.Going && isReplacedLate(class.Spec.OwnerKind) || !pod.Going && (leaves || isYoung(pod, now)) {
			m.moved[w]++
		}
	}
}

// isReplacedLate reports whether what comes instead of a pod may come when that is gone,
// and not when it was asked to end: a StatefulSet waits for its name, and a Job may be
// told to wait. Where it came at once after all, the two count twice for a while.
func isReplacedLate(owner string) bool {
	return owner != "ReplicaSet" && owner != "ReplicationController"
}

func isYoung(pod *planning.PodRef, now time.Time) bool {
	return !pod.Created.IsZero() && now.Before(pod.Created.Add(evictionWindow))
}

// podsByWorkload is how many pods of each workload would leave the nodes.
func podsByWorkload(nodes ...*candidate.Candidate) map[workload]int {
	out := map[workload]int{}
	for _, c := range nodes {
		for i := range c.Node.Pods {
			class := &c.Node.Pods[i]
			for k := range class.Pods {
				if !class.Pods[k].Going {
					out[workloadOf(&class.Spec, &class.Pods[k])]++
				}
			}
		}
	}
	return out
}

// checkEvictions is what keeps a node alone because of how many pods were moved.
func (r Thresholds) checkEvictions(c *candidate.Candidate, limit policy.Share) candidate.Objection {
	if !limit.Set() {
		return candidate.Objection{}
	}
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		for k := range class.Pods {
			if pod := &class.Pods[k]; !pod.Going && isYoung(pod, r.now) {
				return candidate.Objection{Rule: RuleEvictions, Detail: fmt.Sprintf("pod %s/%s was created %s ago, and under %s no pod is moved twice in an hour",
					class.Spec.Namespace, pod.Name, r.ageOf(pod.Created), policy.EvictionsPerHour)}
			}
		}
	}
	return r.moves.firstExceeded(podsByWorkload(c), c, limit)
}

// CheckSet is what keeps nodes from going together, or one of them now, because of how many
// pods were moved, commands before this one included; and the nodes without which the
// others might go.
func (r Thresholds) CheckSet(nodes []*candidate.Candidate) (candidate.Objection, []*candidate.Candidate) {
	var first candidate.Objection
	var spoilers []*candidate.Candidate
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
		if spoilers = append(spoilers, c); first.IsNone() {
			first = no
		}
	}
	return first, spoilers
}

// checkTogether asks of each node's pool whether all of the nodes may go.
func (r Thresholds) checkTogether(nodes []*candidate.Candidate) candidate.Objection {
	sum := podsByWorkload(nodes...)
	for _, c := range nodes {
		if limit := r.policies[c.Node.NodePool].EvictionsPerHour; limit.Set() {
			if no := r.moves.firstExceeded(sum, c, limit); !no.IsNone() {
				return no
			}
		}
	}
	return candidate.Objection{}
}

// firstExceeded is the first workload of the node of which too many pods would move.
func (m *moveCounts) firstExceeded(sum map[workload]int, c *candidate.Candidate, limit policy.Share) candidate.Objection {
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		for k := range class.Pods {
			if class.Pods[k].Going {
				continue
			}
			w := workloadOf(&class.Spec, &class.Pods[k])
			if most := limit.Of(m.pods[w]); m.moved[w]+sum[w] > most {
				return candidate.Objection{Rule: RuleEvictions, Detail: fmt.Sprintf("%d pods of %s would move after %d within the hour, and %s allows %d of its %d",
					sum[w], w, m.moved[w], policy.EvictionsPerHour, most, m.pods[w])}
			}
		}
	}
	return candidate.Objection{}
}

// AddMoves counts the pods of nodes that go.
func (r Thresholds) AddMoves(nodes []*candidate.Candidate) {
	if r.moves == nil {
		return
	}
	for w, count := range podsByWorkload(nodes...) {
		r.moves.moved[w] += count
	}
}
