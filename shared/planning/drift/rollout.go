package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// initializing is how long a new node may take to initialize: as long as disruption waits for a
// replacement.
const initializing = 10 * time.Minute

// maxNamedNodes is how many failing nodes a message names.
const maxNamedNodes = 3

// Member is a node or NodeClaim of a NodePool, with the fields that decide about its rollout.
type Member struct {
	Name    string
	Created time.Time
	// Since is when it was found drifted; zero if it has not drifted.
	Since              time.Time
	Initialized, Ready bool
	// Removing is true if it is being removed or replaced.
	Removing bool
}

// MemberOf returns the member for a node of a snapshot.
func MemberOf(n *planning.Node) Member {
	m := Member{Name: n.Name, Created: n.Created, Initialized: n.Initialized, Ready: n.Ready, Removing: n.MarkedForDeletion || isConfirmed(n.Proposal)}
	if n.Drift != nil {
		m.Since = n.Drift.Since
	}
	return m
}

// MemberOfClaim returns the member that a snapshot would have for a NodeClaim and its node, which is
// nil before it has joined.
func MemberOfClaim(c *karpenter.NodeClaim, node *corev1.Node) Member {
	conditions := c.Status.Conditions
	m := Member{
		Name: c.Name, Created: c.CreationTimestamp.UTC(), Initialized: conditions.IsTrue(karpenter.ConditionTypeInitialized),
		Removing: c.DeletionTimestamp != nil || conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) || isConfirmed(planning.ReadProposal(c)),
	}
	if drifted, _ := conditions.Get(karpenter.ConditionTypeDrifted); drifted.Status == metav1.ConditionTrue {
		m.Since = drifted.LastTransitionTime.UTC()
	}
	if node == nil {
		return m
	}
	m.Name, m.Created = node.Name, node.CreationTimestamp.UTC()
	m.Ready = slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	m.Removing = m.Removing || node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey })
	return m
}

// isConfirmed reports whether a node's proposal is confirmed.
func isConfirmed(p *planning.Proposal) bool { return p != nil && !p.ConfirmedAt.IsZero() }

// Rollout is the progress of replacing the drifted nodes of a NodePool. It is computed from the
// cluster and not stored: a member that has not drifted, and was created after the first member
// drifted, is a replacement.
type Rollout struct {
	// First is when the first member drifted; zero if none has drifted.
	First time.Time
	// Fresh are the indexes of the members that were created since and are not being removed.
	Fresh []int
	// Waiting is the number of drifted members that are not being removed yet.
	Waiting int
	// Failure describes what failed since then; "" if nothing did.
	Failure string
}

// NewRollout computes the rollout of a pool. class is the pool's node class, or nil. Failure only
// stops a pool with waves: see [policy.Drift.HasWaves].
func NewRollout(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, members []Member, asked policy.Drift, now time.Time) Rollout {
	var r Rollout
	for _, m := range members {
		if m.Since.IsZero() {
			continue
		}
		if r.First.IsZero() || m.Since.Before(r.First) {
			r.First = m.Since
		}
		if !m.Removing {
			r.Waiting++
		}
	}
	for i, m := range members {
		if m.Since.IsZero() && !m.Removing && m.Created.After(r.First) {
			r.Fresh = append(r.Fresh, i)
		}
	}
	since := r.First
	// A time in the future takes effect later.
	if resume := asked.Resume; resume.After(since) && !resume.After(now) {
		since = resume
	}
	r.Failure = describeFailedLaunch(pool, class, since)
	if r.Failure == "" {
		r.Failure = r.describeFailedNodes(members, since, now)
	}
	return r
}

// Halted returns why the drift of a pool with waves is stopped, and how to resume it; "" if it is not
// stopped or no drifted node is waiting.
func (r Rollout) Halted() string {
	if r.Failure == "" || r.Waiting == 0 {
		return ""
	}
	return r.Failure + ". Drift resumes when the NodePool or its node class changes, when a ready node replaces the failed one, or when you set " +
		policy.DriftResume + " to the current time"
}

// describeFailedNodes describes the members that were created after a time and do not work, the first of them by
// name.
func (r Rollout) describeFailedNodes(members []Member, since, now time.Time) string {
	var late, sick []string
	for _, i := range r.Fresh {
		m := members[i]
		switch {
		case !m.Created.After(since):
		case m.Initialized && !m.Ready:
			sick = append(sick, m.Name)
		case !m.Initialized && now.Sub(m.Created) > initializing:
			late = append(late, m.Name)
		}
	}
	var said []string
	if len(sick) > 0 {
		said = append(said, formatNodes(sick)+", created since then, is not ready")
	}
	if len(late) > 0 {
		said = append(said, fmt.Sprintf("%s, created since then, is not initialized after %s", formatNodes(late), initializing))
	}
	return strings.Join(said, "; ")
}

func formatNodes(names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return "node " + names[0]
	}
	more := len(names) - maxNamedNodes
	if more <= 0 {
		return "each of the nodes " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("each of the nodes %s and %d more", strings.Join(names[:maxNamedNodes], ", "), more)
}

// describeFailedLaunch describes the first launch of the pool that failed after a time. Launches with an image that
// the class no longer selects do not count.
func describeFailedLaunch(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, since time.Time) string {
	launches, ok := planning.ReadLaunchHistory(pool)
	if !ok {
		return describeUnhealthyPool(pool, since)
	}
	for _, l := range launches.Records {
		if !l.OK && l.At.After(since) && maySelectImage(class, l.Image) {
			return fmt.Sprintf("a launch failed at %s (%s: %s)", l.At.UTC().Format(time.RFC3339), l.Reason, l.Message)
		}
	}
	return ""
}

// maySelectImage reports whether the class may select the image; true if either is unknown.
func maySelectImage(class *karpenter.EC2NodeClass, image string) bool {
	return image == "" || class == nil || len(class.Status.AMIs) == 0 ||
		slices.ContainsFunc(class.Status.AMIs, func(a karpenter.AMI) bool { return a.ID == image })
}

// describeUnhealthyPool describes the NodeRegistrationHealthy condition of a pool without a launch history.
func describeUnhealthyPool(pool *karpenter.NodePool, since time.Time) string {
	said, _ := pool.Status.Conditions.Get(karpenter.ConditionTypeNodeRegistrationHealthy)
	if said.Status != metav1.ConditionFalse || !said.LastTransitionTime.After(since) {
		return ""
	}
	return fmt.Sprintf("%s is false (%s: %s)", said.Type, said.Reason, said.Message)
}
