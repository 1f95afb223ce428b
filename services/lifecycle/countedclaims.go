package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// maxClaimReads is how many NodeClaims an admission reads one by one. If there are more, it lists all.
const maxClaimReads = 100

// countedClaims allows an admission to count the NodeClaims of the cache, which may lag by any time. It is valid for
// one sequence number of the outbox: each claim that the plans up to that number may launch has been in the cache or is in
// unseen. These rules make the count safe:
//
//   - A claim is launched only after an outbox that was done has listed its UID, so it was created before. A list that begins
//     after the outbox was read has all claims of the plans up to its number. The claims of the next plan are added
//     when this replica swaps the outbox to done itself.
//   - Every plan has its own number. If an outbox is sent with the following number, no other plan was admitted since.
//     Otherwise the admission lists the API server again: on a new leader, after a batch was given up, and after
//     another replica has completed a plan, or has done so in spite of an error here.
//   - A cache never returns to an earlier state, so a claim that it has shown is counted until the cache shows its removal.
//     Until then, an older state counts at least as much, because the ceiling of a claim covers every launch; understates has the exceptions.
type countedClaims struct {
	mu sync.Mutex
	// outbox is the UID of the outbox, empty if nothing was listed yet, and seq is the sequence number.
	outbox string
	seq    uint64
	// unseen are the claims that the cache understates, by name.
	unseen map[string]*karpenter.NodeClaim
}

// understates reports whether a cached claim may count less than the newer claim, which was read or written. The cache may lack the claim (nil) or its
// launch, or show it as being removed after the removal was rolled back.
func understates(cached, claim *karpenter.NodeClaim) bool {
	return cached == nil || cached.UID != claim.UID ||
		cached.Annotations[launchspec.CeilingAnnotation] != claim.Annotations[launchspec.CeilingAnnotation] ||
		planning.IsClaimBeingRemoved(cached) && !planning.IsClaimBeingRemoved(claim)
}

// startAt makes all claims of a list the counted ones. The list began after the outbox was read, and the plans up to seq
// may launch claims.
func (k *countedClaims) startAt(uid string, seq uint64, claims []*karpenter.NodeClaim, cache cluster.Cache) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outbox, k.seq, k.unseen = uid, seq, map[string]*karpenter.NodeClaim{}
	k.addLocked(claims, cache)
}

// completePlan adds the claims of the plan with the following number, which this replica has completed. If the outbox also lists claims of an
// abandoned plan, the next admission lists all claims: another replica may have admitted the plan, and counted a claim that was created after this
// replica listed.
func (k *countedClaims) completePlan(held outbox.Stored, created []*karpenter.NodeClaim, cache cluster.Cache) {
	k.mu.Lock()
	defer k.mu.Unlock()
	isCreated := func(name string) bool {
		return slices.ContainsFunc(created, func(c *karpenter.NodeClaim) bool { return c.Name == name })
	}
	others := slices.ContainsFunc(held.Claims, func(name string) bool { return !isCreated(name) })
	if k.outbox == held.UID() && k.seq+1 == held.Seq && !others {
		k.seq = held.Seq
		k.addLocked(created, cache)
	}
}

// addClaims adds claims as they were written.
func (k *countedClaims) addClaims(claims []*karpenter.NodeClaim, cache cluster.Cache) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outbox != "" {
		k.addLocked(claims, cache)
	}
}

// addLocked adds claims, and then removes each claim that the cache shows completely.
func (k *countedClaims) addLocked(claims []*karpenter.NodeClaim, cache cluster.Cache) {
	for _, c := range claims {
		k.unseen[c.Name] = c
	}
	for name, c := range k.unseen {
		if !understates(cachedClaim(cache, name), c) {
			delete(k.unseen, name)
		}
	}
}

// forget makes the next admission list all claims.
func (k *countedClaims) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outbox, k.unseen = "", nil
}

// namesToRead returns the names, in order, of the claims that the admission of a plan reads from the API server. It is false if the admission must list
// all claims. It reads:
//
//   - claims that the cache understates,
//   - claims of the plan that a user created, because their launch may be written already,
//   - claims of the plan that the cache has, because the plan does not count a claim twice: they must still exist.
func (k *countedClaims) namesToRead(held outbox.Stored, plan planning.Plan, cache cluster.Cache) (names []string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outbox != held.UID() || k.seq+1 != held.Seq {
		return nil, false
	}
	k.addLocked(nil, cache)
	for name := range k.unseen {
		names = append(names, name)
	}
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			if c.Object.UID != "" || cachedClaim(cache, c.Object.Name) != nil {
				names = append(names, c.Object.Name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, len(names) <= maxClaimReads
}

// replaceRead replaces the claims that were read again, nil for one that does not exist any more.
func (k *countedClaims) replaceRead(names []string, read []*karpenter.NodeClaim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, name := range names {
		switch _, known := k.unseen[name]; {
		case known && read[i] == nil:
			delete(k.unseen, name)
		case known:
			k.unseen[name] = read[i]
		}
	}
}

// cachedClaim returns the claim of the cache, or nil.
func cachedClaim(cache cluster.Cache, name string) *karpenter.NodeClaim {
	object, _ := cache.Get(cluster.NodeClaims, cluster.Key{Name: name})
	c, _ := object.(*karpenter.NodeClaim)
	return c
}

// listCountedClaims returns the claims that an admission counts. It reads some of them from the API server, and takes all others from the cache. If this
// replica does not know the claims of the plan before, it lists all from the API server.
func (s *Service) listCountedClaims(ctx context.Context, held outbox.Stored, plan planning.Plan) ([]*karpenter.NodeClaim, error) {
	names, ok := s.counted.namesToRead(held, plan, s.Cache)
	if !ok {
		claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
		if err != nil {
			return nil, fmt.Errorf("listing NodeClaims to admit a plan: %w", err)
		}
		s.counted.startAt(held.UID(), held.Seq-1, claims, s.Cache)
		return claims, nil
	}
	read := make([]*karpenter.NodeClaim, len(names))
	failures := s.executor.ForEach(len(names), func(i int) error {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.Key{Name: names[i]})
		switch {
		case fault.Is(err, fault.Missing):
			return nil
		case err != nil:
			return fmt.Errorf("reading NodeClaim %s to admit a plan: %w", names[i], err)
		}
		read[i] = c
		return nil
	})
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	s.counted.replaceRead(names, read)
	claims := slices.DeleteFunc(cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims), func(c *karpenter.NodeClaim) bool {
		_, is := slices.BinarySearch(names, c.Name)
		return is
	})
	return append(claims, slices.DeleteFunc(read, func(c *karpenter.NodeClaim) bool { return c == nil })...), nil
}
