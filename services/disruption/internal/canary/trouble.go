package canary

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// failure is a launch that became no node.
type failure struct {
	at  time.Time
	why string
}

// failures are those that the pool remembers (B018). What failed with an image that
// the class does not ask for any more says nothing about what it asks for now.
func failures(s *scheduling.Snapshot, pool *karpenter.NodePool) []failure {
	launches, ok := scheduling.LaunchesOf(pool)
	if !ok {
		return unhealthy(pool)
	}
	wanted := images(s, pool)
	var out []failure
	for _, l := range launches.Last {
		if !l.OK && (l.Image == "" || len(wanted) == 0 || slices.Contains(wanted, l.Image)) {
			out = append(out, failure{l.At, fmt.Sprintf("a launch failed at %s (%s: %s)", l.At.UTC().Format(time.RFC3339), l.Reason, l.Message)})
		}
	}
	return out
}

// unhealthy is what the condition of a pool says that remembers nothing.
func unhealthy(pool *karpenter.NodePool) []failure {
	said, _ := pool.Status.Conditions.Get(karpenter.ConditionTypeNodeRegistrationHealthy)
	if said.Status != metav1.ConditionFalse {
		return nil
	}
	return []failure{{said.LastTransitionTime.Time, fmt.Sprintf("%s is false (%s: %s)", said.Type, said.Reason, said.Message)}}
}

// images are those that the pool's class asks for.
func images(s *scheduling.Snapshot, pool *karpenter.NodePool) []string {
	ref := pool.Spec.Template.Spec.NodeClassRef
	var out []string
	for i := range s.NodeClasses {
		if class := &s.NodeClasses[i]; ref != nil && class.Name == ref.Name {
			for _, image := range class.Status.AMIs {
				out = append(out, image.ID)
			}
		}
	}
	return out
}

// ails is what has gone wrong since the first node drifted, and since a person said
// that drift may go on; empty when nothing has.
func (r *Rollout) ails(failed []failure) string {
	since := r.first
	if r.drift.Resume.After(since) {
		since = r.drift.Resume
	}
	for _, f := range failed {
		if f.at.After(since) {
			return f.why
		}
	}
	for _, n := range r.fresh {
		switch {
		case !n.Created.After(since):
		case n.Initialized && !n.Ready:
			return fmt.Sprintf("node %s, which came since, is not ready", n.Name)
		case !n.Initialized && r.now.Sub(n.Created) > initializing:
			return fmt.Sprintf("%s, which came since, is not initialized after %s", n.Name, initializing)
		}
	}
	return ""
}
