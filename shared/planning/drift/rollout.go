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

// initializing is how long a fresh node may take: as long as one is waited for that
// replaces another.
const initializing = 10 * time.Minute

// namedMost is how many nodes that ail are named.
const namedMost = 3

// Member is a node of a NodePool, or a claim that is to become one, as far as the
// rollout of what the pool asks for now goes by it.
type Member struct {
	Name    string
	Created time.Time
	// Since is when it was found to have drifted; zero for one that has not.
	Since              time.Time
	Initialized, Ready bool
	// Going says that it is being removed, or replaced.
	Going bool
}

// MemberOf is a node of a snapshot.
func MemberOf(n *planning.Node) Member {
	m := Member{Name: n.Name, Created: n.Created, Initialized: n.Initialized, Ready: n.Ready, Going: n.MarkedForDeletion || replaced(n.Proposal)}
	if n.Drift != nil {
		m.Since = n.Drift.Since
	}
	return m
}

// MemberOfClaim is what the snapshot would have of a claim and of its node, which is nil
// until it has joined.
func MemberOfClaim(c *karpenter.NodeClaim, node *corev1.Node) Member {
	conditions := c.Status.Conditions
	m := Member{
		Name: c.Name, Created: c.CreationTimestamp.UTC(), Initialized: conditions.IsTrue(karpenter.ConditionTypeInitialized),
		Going: c.DeletionTimestamp != nil || conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) || replaced(planning.ReadProposal(c)),
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
	m.Going = m.Going || node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey })
	return m
}

// replaced reports whether a proposal about a node acts.
func replaced(p *planning.Proposal) bool { return p != nil && !p.ConfirmedAt.IsZero() }

// Rollout is how what a NodePool and its class ask for now has come to the pool so far.
// It is read off the cluster, and written down nowhere: a member that is not drifted,
// and came after the first of the pool drifted, is what is asked for now.
type Rollout struct {
	// First is when the first member drifted; zero where none has.
	First time.Time
	// Fresh are the places of the members that came since and do not go.
	Fresh []int
	// Waiting is how many have drifted and do not go yet.
	Waiting int
	// Trouble is what has gone wrong with what came since, in words; "" for nothing.
	Trouble string
}

// NewRollout reads how the drift of a pool goes. The class is the pool's, or nil. Only a
// pool that asks for waves is halted by trouble: see [policy.Drift.HasWaves].
func NewRollout(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, members []Member, asked policy.Drift, now time.Time) Rollout {
	var r Rollout
	for _, m := range members {
		if m.Since.IsZero() {
			continue
		}
		if r.First.IsZero() || m.Since.Before(r.First) {
			r.First = m.Since
		}
		if !m.Going {
			r.Waiting++
		}
	}
	for i, m := range members {
		if m.Since.IsZero() && !m.Going && m.Created.After(r.First) {
			r.Fresh = append(r.Fresh, i)
		}
	}
	since := r.First
	// A time that has not come yet is said for later.
	if resume := asked.Resume; resume.After(since) && !resume.After(now) {
		since = resume
	}
	r.Trouble = failed(pool, class, since)
	if r.Trouble == "" {
		r.Trouble = r.ails(members, since, now)
	}
	return r
}

// Halted says why the drift of a pool that asks for waves does not go on by itself, and
// what makes it go on; "" where it does, or where nothing is left to go.
func (r Rollout) Halted() string {
	if r.Trouble == "" || r.Waiting == 0 {
		return ""
	}
	return r.Trouble + ". Drift goes on when the NodePool or its node class changes, when the node is replaced by one that works, or when you set " +
		policy.DriftResume + " to the present time"
}

// ails tells of the members that came after a time and do not work, the first by their
// names.
func (r Rollout) ails(members []Member, since, now time.Time) string {
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
		said = append(said, named(sick)+", which came since, is not ready")
	}
	if len(late) > 0 {
		said = append(said, fmt.Sprintf("%s, which came since, is not initialized after %s", named(late), initializing))
	}
	return strings.Join(said, "; ")
}

func named(names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return "node " + names[0]
	}
	more := len(names) - namedMost
	if more <= 0 {
		return "each of the nodes " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("each of the nodes %s and %d more", strings.Join(names[:namedMost], ", "), more)
}

// failed tells of the first launch that the pool remembers to have failed after a time.
// What failed with an image that the class does not ask for any more says
// nothing about what it asks for now.
func failed(pool *karpenter.NodePool, class *karpenter.EC2NodeClass, since time.Time) string {
	launches, ok := planning.ReadLaunchHistory(pool)
	if !ok {
		return unhealthy(pool, since)
	}
	for _, l := range launches.Records {
		if !l.OK && l.At.After(since) && asksFor(class, l.Image) {
			return fmt.Sprintf("a launch failed at %s (%s: %s)", l.At.UTC().Format(time.RFC3339), l.Reason, l.Message)
		}
	}
	return ""
}

// asksFor reports whether the class may ask for the image: where either is unknown, it
// may.
func asksFor(class *karpenter.EC2NodeClass, image string) bool {
	return image == "" || class == nil || len(class.Status.AMIs) == 0 ||
		slices.ContainsFunc(class.Status.AMIs, func(a karpenter.AMI) bool { return a.ID == image })
}

// unhealthy is what the condition of a pool says that remembers nothing.
func unhealthy(pool *karpenter.NodePool, since time.Time) string {
	said, _ := pool.Status.Conditions.Get(karpenter.ConditionTypeNodeRegistrationHealthy)
	if said.Status != metav1.ConditionFalse || !said.LastTransitionTime.After(since) {
		return ""
	}
	return fmt.Sprintf("%s is false (%s: %s)", said.Type, said.Reason, said.Message)
}
