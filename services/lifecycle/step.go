package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/door"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/drain"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/sweep"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/outbox"
)

// Pace is how often Step looks when nothing changes: the finest of the times
// that it keeps (eviction backoff, drain deadlines).
const Pace = time.Second

// Eviction backoff (B169).
const (
	evictBase = 100 * time.Millisecond
	evictMax  = 10 * time.Second
)

// Step looks at everything once and does what is due. A claim that fails holds
// up nothing but itself (B242).
func (s *Service) Step(ctx context.Context) error {
	leads, err := s.Leads(ctx)
	if err != nil || !leads || !s.Cache.Synced() {
		return err
	}
	claims := cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims)
	held, err := s.fence(ctx, claims)
	if err != nil {
		return err
	}
	var failures []error
	if held != nil {
		failures = append(failures, s.launch(ctx, nil, held.Outbox))
	}
	failures = append(failures, s.ask(ctx, nil, claims))
	w := s.look()
	for _, c := range claims {
		effects := claim.Next(s.view(c, held, w))
		if err := s.do.Do(ctx, nil, effects...); err != nil {
			failures = append(failures, fmt.Errorf("NodeClaim %s: %w", c.Name, err))
		}
	}
	failures = append(failures, s.nodeClasses(ctx, claims), s.nodePools(ctx, claims))
	s.forget(claims)
	return worth(failures)
}

// worth joins the failures that a log should show. A blocked eviction or a
// lost swap is the ordinary course of things.
func worth(failures []error) error {
	return errors.Join(slices.DeleteFunc(failures, func(err error) bool {
		return err == nil || fault.Is(err, fault.Throttled, fault.Conflict)
	})...)
}

// fence reads the outbox where some claim waits to be admitted.
func (s *Service) fence(ctx context.Context, claims []*karpenter.NodeClaim) (*outbox.Held, error) {
	waits := slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		_, _, planned := door.Batch(c)
		return planned && !door.Admitted(c) && c.DeletionTimestamp == nil
	})
	if !waits {
		return nil, nil
	}
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	return &held, nil
}

// world is the cache, indexed for one look.
type world struct {
	nodes map[string]*corev1.Node
	pods  map[string][]*corev1.Pod
	pools map[string]*karpenter.NodePool
}

func (s *Service) look() world {
	w := world{
		nodes: nodesByProvider(s.Cache), pods: map[string][]*corev1.Pod{}, pools: map[string]*karpenter.NodePool{},
	}
	for _, pod := range cluster.Cached[*corev1.Pod](s.Cache, cluster.Pods) {
		if pod.Spec.NodeName != "" {
			w.pods[pod.Spec.NodeName] = append(w.pods[pod.Spec.NodeName], pod)
		}
	}
	for _, pool := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		w.pools[pool.Name] = pool
	}
	return w
}

func nodesByProvider(cache cluster.Cache) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, node := range cluster.Cached[*corev1.Node](cache, cluster.Nodes) {
		if node.Spec.ProviderID != "" {
			nodes[node.Spec.ProviderID] = node
		}
	}
	return nodes
}

func isReady(node *corev1.Node) bool { return claim.Ready(node) }

// view gathers what the decision about one claim may look at.
func (s *Service) view(c *karpenter.NodeClaim, held *outbox.Held, w world) claim.View {
	v := claim.View{
		Claim: c, Pool: w.pools[c.Labels[karpenter.NodePoolLabelKey]], Outbox: held, Cluster: s.Cluster.Name,
		Refused: c.Annotations[RefusedAnnotation], Gone: c.Annotations[sweep.GoneAnnotation] != "", Now: s.Now(),
		MayAsk:   func(kind string) bool { return s.due(kind+"/"+string(c.UID), resend) },
		MayEvict: s.mayEvict,
	}
	if c.Status.ProviderID == "" {
		return v
	}
	if v.Node = w.nodes[c.Status.ProviderID]; v.Node != nil {
		v.Pods = w.pods[v.Node.Name]
		v.PodsChanged = s.podsChanged(c, v.Pods)
	}
	return v
}

// podsChanged reports whether the set of workload pods on the node is another
// than at the last look (B140).
func (s *Service) podsChanged(c *karpenter.NodeClaim, pods []*corev1.Pod) bool {
	var uids []string
	for _, pod := range pods {
		if drain.OwnedByDaemonSet(pod) || !drain.Drainable(pod, s.Now()) {
			continue
		}
		state := string(pod.UID)
		if pod.DeletionTimestamp != nil {
			state += "-"
		}
		uids = append(uids, state)
	}
	slices.Sort(uids)
	now := strings.Join(uids, " ")
	before, known := s.pods[string(c.UID)]
	if known && before == now {
		return false
	}
	if !c.Status.LastPodEventTime.IsZero() && s.Now().Sub(c.Status.LastPodEventTime.Time) < 10*time.Second {
		// The write would be suppressed; keep the old set so that it is seen then.
		return known
	}
	s.pods[string(c.UID)] = now
	// A process that has just started knows nothing and claims nothing, except
	// for a node on which no pod was ever seen.
	return known || now != "" && c.Status.LastPodEventTime.IsZero()
}

// mayEvict keeps a pod's eviction to its backoff.
func (s *Service) mayEvict(pod *corev1.Pod) bool {
	a := s.tries[string(pod.UID)]
	if s.Now().Before(a.next) {
		return false
	}
	a.wait = min(max(a.wait*2, evictBase), evictMax)
	a.next = s.Now().Add(a.wait)
	s.tries[string(pod.UID)] = a
	return true
}

// forget drops what is remembered of things that no longer matter.
func (s *Service) forget(claims []*karpenter.NodeClaim) {
	alive := map[string]bool{}
	for _, c := range claims {
		alive[string(c.UID)] = true
	}
	for uid := range s.pods {
		if !alive[uid] {
			delete(s.pods, uid)
		}
	}
	for key, at := range s.asked {
		if s.Now().Sub(at) > time.Hour {
			delete(s.asked, key)
		}
	}
	for uid, a := range s.tries {
		if s.Now().Sub(a.next) > time.Hour {
			delete(s.tries, uid)
		}
	}
}
