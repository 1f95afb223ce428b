package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// decideAllInterval is how often all claims are decided, also settled ones.
	decideAllInterval = time.Minute
	// poolsInterval is how often NodePools, EC2NodeClasses and drift are reconciled if no object has changed: some of
	// their conditions depend on the time.
	poolsInterval = 10 * time.Second
)

// settledState is what the next reconcile knows of the last one, so that it decides only what may have another result.
// The zero value knows nothing, and everything is decided.
type settledState struct {
	// claims are the claims for which nothing is to be done before their time, by UID.
	claims map[types.UID]settledClaim
	// until is the earliest time of all of them; zero for none.
	until time.Time
	// isBusy reports that the last reconcile left or began something: the next one reads the cluster again.
	isBusy bool
	// hasWork reports that this reconcile found a disruption that acts or a node without a claim.
	hasWork bool
	// arePoolsDue reports that NodePools, EC2NodeClasses and drift have to be reconciled before poolsInterval, and
	// poolsAt is when they were. inventory is the inventory with which drift was detected.
	arePoolsDue bool
	poolsAt     time.Time
	inventory   *runningInstances
	// isSpecChanged reports that a NodePool's spec or an EC2NodeClass has changed since the last full reconcile: the next one is
	// full, so that people do not wait for a new NodePool. generations are those of the NodePools.
	isSpecChanged bool
	generations   map[string]int64
	// allAt is when all claims were decided.
	allAt time.Time
	// changedNodes are the nodes whose pods have changed since the last decision.
	changedNodes map[string]bool
}

// settledClaim is a claim for which Next had no effects, and all inputs of that decision. Objects of the cache are replaced
// when they change, so pointers can be compared. Of its NodePool a settled claim depends on the spec alone.
type settledClaim struct {
	claim      *karpenter.NodeClaim
	node       *corev1.Node
	nodes      int
	pool       types.UID
	generation int64
	class      *karpenter.EC2NodeClass
	// until is when the decision has to be repeated; zero for never.
	until time.Time
}

// takeChanges takes the changes of the cache since the last reconcile. It reports whether NodeClaims, Nodes, NodePools or
// EC2NodeClasses have changed. Other kinds do not matter for settled claims, except pods, by which it drops the claims of
// their nodes.
func (s *Service) takeChanges() bool {
	claims, nodes := s.Cache.TakeChanges(cluster.NodeClaims), s.Cache.TakeChanges(cluster.Nodes)
	pools, classes := s.Cache.TakeChanges(cluster.NodePools), s.Cache.TakeChanges(cluster.NodeClasses)
	changed := !claims.Empty() || !nodes.Empty() || !pools.Empty() || !classes.Empty()
	state := &s.settled
	state.isSpecChanged = state.isSpecChanged || !classes.Empty() || s.hasNewGeneration(pools)
	if changed {
		state.arePoolsDue = true
	}
	pods := s.Cache.TakeChanges(cluster.Pods)
	if pods.All {
		state.claims = nil
	}
	if state.changedNodes == nil {
		state.changedNodes = map[string]bool{}
	}
	for _, node := range pods.Values {
		state.changedNodes[node] = true
	}
	return changed
}

// hasNewGeneration reports whether the spec of a NodePool has changed, or a NodePool was added or removed. The status changes
// with each node.
func (s *Service) hasNewGeneration(changed cluster.Changed) bool {
	return changed.All || slices.ContainsFunc(changed.Keys, func(key cluster.Key) bool {
		pool, exists := s.Cache.Get(cluster.NodePools, key)
		return !exists || pool.(*karpenter.NodePool).IsManaged() && pool.GetGeneration() != s.settled.generations[key.Name]
	})
}

// recordSpecs records the NodePools that a full reconcile reads.
func (s *Service) recordSpecs(pools map[string]*karpenter.NodePool) {
	s.settled.isSpecChanged, s.settled.generations = false, make(map[string]int64, len(pools))
	for name, pool := range pools {
		s.settled.generations[name] = pool.Generation
	}
}

// areClaimsQuiet reports whether a reconcile at the time has nothing to decide for any claim, after it took the changes.
func (s *Service) areClaimsQuiet(changed, full bool) bool {
	state, now := &s.settled, s.lastReconcile
	switch {
	case changed || state.isBusy || state.claims == nil:
		return false
	case full && (len(state.changedNodes) > 0 || now.Sub(state.allAt) >= decideAllInterval):
		return false
	default:
		return state.until.IsZero() || now.Before(state.until)
	}
}

// arePoolsDue reports whether NodePools, EC2NodeClasses and drift have to be reconciled. Without Rest, and with gates that
// do a part of their work in each reconcile, they always have to.
func (s *Service) arePoolsDue() bool {
	state := &s.settled
	return state.arePoolsDue || s.Rest == 0 || s.PodDeletionCosts || len(s.LegacyRepair.Policies) > 0 ||
		state.inventory != s.drift.inventory.Load() || s.lastReconcile.Sub(state.poolsAt) >= poolsInterval
}

// recordPools records that NodePools, EC2NodeClasses and drift were reconciled, with the inventory that they read at most.
func (s *Service) recordPools(inventory *runningInstances, failed bool) {
	state := &s.settled
	state.poolsAt, state.inventory, state.arePoolsDue = s.lastReconcile, inventory, failed
}

// settledInputs returns the inputs of a decision about the claim.
func (s *Service) settledInputs(c *karpenter.NodeClaim, node *corev1.Node, w clusterState) settledClaim {
	in := settledClaim{claim: c, node: node, nodes: len(w.nodesByProviderID[c.Status.ProviderID])}
	if pool := w.pools[c.Labels[karpenter.NodePoolLabelKey]]; pool != nil {
		in.pool, in.generation = pool.UID, pool.Generation
	}
	if ref := c.Spec.NodeClassRef; ref != nil {
		in.class = w.classes[ref.Name]
	}
	return in
}

// isSettled reports whether the last decision about the claim still holds.
func (s *Service) isSettled(in settledClaim) bool {
	before, was := s.settled.claims[in.claim.UID]
	if !was || in.node == nil || s.settled.changedNodes[in.node.Name] || !before.until.IsZero() && !s.lastReconcile.Before(before.until) {
		return false
	}
	in.until = before.until
	return in == before
}

// settle returns the claim as settled if the decision without effects holds for some time.
func (s *Service) settle(in settledClaim, v nodeclaim.View, effects []effect.Effect) (settledClaim, bool) {
	until, settled := v.SettledUntil(effects)
	if !settled {
		return in, false
	}
	until = nodeclaim.EarlierOf(until, nodeclaim.BlockExpiry(in.claim, in.class))
	in.until = nodeclaim.EarlierOf(until, s.throttle.nextAllowed(consistencyKey(in.claim), consistencyInterval))
	return in, true
}

// verifySettled panics if a settled claim has effects, with VerifySettled. If the reconcile was paused, the cache may have
// changed since the changes were taken, and the next reconcile takes them.
func (s *Service) verifySettled(in settledClaim, w clusterState) {
	if !s.VerifySettled || s.Now() != s.lastReconcile {
		return
	}
	if effects := nodeclaim.Next(s.claimView(in.claim, nil, w)); len(effects) > 0 {
		panic(fmt.Sprintf("NodeClaim %s is settled until %s, and has the effects %+v at %s", in.claim.Name, s.settled.claims[in.claim.UID].until, effects, s.lastReconcile))
	}
}

// verifyQuiet panics if a claim is not settled in a reconcile that is skipped, with VerifySettled.
func (s *Service) verifyQuiet(ctx context.Context) {
	if !s.VerifySettled {
		return
	}
	w := s.readClusterState(ctx)
	for _, c := range w.claims {
		in := s.settledInputs(c, w.findNode(c), w)
		before := s.settled.claims[c.UID]
		if in.node != nil && before.node != nil && in.node.UID == before.node.UID {
			in.node = before.node // A version without a change is not a change.
		}
		// Neither is another list of the same versions.
		if before.claim != nil && before.claim.ResourceVersion == c.ResourceVersion {
			in.claim = before.claim
		}
		if in.class != nil && before.class != nil && in.class.ResourceVersion == before.class.ResourceVersion {
			in.class = before.class
		}
		switch {
		case in.node != nil && s.settled.changedNodes[in.node.Name]: // The next reconcile of all objects decides it.
		case !s.isSettled(in):
			panic(fmt.Sprintf("a reconcile is skipped at %s although NodeClaim %s is not settled", s.lastReconcile, c.Name))
		default:
			s.verifySettled(in, w)
		}
	}
}

// effectCounter counts effects that change something, so that a reconcile which had one is not the last.
type effectCounter struct{ n atomic.Int64 }

func (c *effectCounter) count(e effect.Effect) {
	if _, report := e.(effect.Report); !report {
		c.n.Add(1)
	}
}
