package restraint

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// window is the hour of the limit.
const window = time.Hour

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

// moves are how many pods each workload has, and how many of them were moved within
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
type moves struct{ pods, moved map[workload]int }

func countMoves(s *planning.Snapshot) *moves {
	m := &moves{pods: map[workload]int{}, moved: map[workload]int{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for k := range n.Pods {
			m.count(&n.Pods[k], s.Taken, n.Going)
		}
	}
	for i := range s.Waiting {
		m.wait(&s.Waiting[i], s.Taken)
	}
	return m
}

// wait counts the pods of a class that are on no node yet; those that wait on one
// that goes are counted there.
func (m *moves) wait(class *planning.PodClass, now time.Time) {
	on := func(pod planning.PodRef) bool { return pod.Node != "" || pod.Buffer != "" }
	m.count(&planning.PodClass{Spec: class.Spec, Pods: slices.DeleteFunc(slices.Clone(class.Pods), on)}, now, false)
}

// count counts the pods of a class, of a node that stays or one that leaves.
func (m *moves) count(class *planning.PodClass, now time.Time, leaves bool) {
	for i := range class.Pods {
		pod := &class.Pods[i]
		w := workloadOf(&class.Spec, pod)
		if !pod.Going || class.Spec.OwnerKind == "StatefulSet" {
			m.pods[w]++
		}
		if pod.Going && replacesLate(class.Spec.OwnerKind) || !pod.Going && (leaves || young(pod, now)) {
			m.moved[w]++
		}
	}
}

// replacesLate reports whether what comes instead of a pod may come when that is gone,
// and not when it was asked to end: a StatefulSet waits for its name, and a Job may be
// told to wait. Where it came at once after all, the two count twice for a while.
func replacesLate(owner string) bool {
	return owner != "ReplicaSet" && owner != "ReplicationController"
}

func young(pod *planning.PodRef, now time.Time) bool {
	return !pod.Created.IsZero() && now.Before(pod.Created.Add(window))
}

// carries is how many pods of each workload would leave the nodes.
func carries(nodes ...*candidate.Candidate) map[workload]int {
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

// evictions is what keeps a node alone because of how many pods were moved.
func (r Restraint) evictions(c *candidate.Candidate, limit policy.Share) candidate.Objection {
	if !limit.Set() {
		return candidate.Objection{}
	}
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		for k := range class.Pods {
			if pod := &class.Pods[k]; !pod.Going && young(pod, r.now) {
				return candidate.Objection{Rule: RuleEvictions, Detail: fmt.Sprintf("pod %s/%s was created %s ago, and under %s no pod is moved twice in an hour",
					class.Spec.Namespace, pod.Name, r.ago(pod.Created), policy.EvictionsPerHour)}
			}
		}
	}
	return r.moves.beyond(carries(c), c, limit)
}

// Set is what keeps nodes from going together, or one of them now, because of how many
// pods were moved, commands before this one included; and the nodes without which the
// others might go.
func (r Restraint) Set(nodes []*candidate.Candidate) (candidate.Objection, []*candidate.Candidate) {
	var first candidate.Objection
	var spoilers []*candidate.Candidate
	if r.moves == nil {
		return first, nil
	}
	var fit []*candidate.Candidate
	for _, c := range nodes {
		no := r.together(append(fit, c))
		if no.None() {
			fit = append(fit, c)
			continue
		}
		if spoilers = append(spoilers, c); first.None() {
			first = no
		}
	}
	return first, spoilers
}

// together asks of each node's pool whether all of the nodes may go.
func (r Restraint) together(nodes []*candidate.Candidate) candidate.Objection {
	sum := carries(nodes...)
	for _, c := range nodes {
		if limit := r.asking[c.Node.NodePool].EvictionsPerHour; limit.Set() {
			if no := r.moves.beyond(sum, c, limit); !no.None() {
				return no
			}
		}
	}
	return candidate.Objection{}
}

// beyond is the first workload of the node of which too many pods would move.
func (m *moves) beyond(sum map[workload]int, c *candidate.Candidate, limit policy.Share) candidate.Objection {
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

// Take counts the pods of nodes that go.
func (r Restraint) Take(nodes []*candidate.Candidate) {
	if r.moves == nil {
		return
	}
	for w, count := range carries(nodes...) {
		r.moves.moved[w] += count
	}
}
