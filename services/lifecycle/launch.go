package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const (
	// resendInterval is the interval at which an unanswered request is repeated.
	resendInterval = 30 * time.Second
)

// launchClaims admits the claims of an executed plan and requests their launch. A claim that
// cannot be written does not stop the others. created are the claims that were created a moment ago.
func (s *Service) launchClaims(ctx context.Context, cause *event.Envelope, o outbox.Outbox, created []*karpenter.NodeClaim) error {
	if o.State != outbox.Done || len(o.Claims) == 0 {
		return nil
	}
	claims, err := s.listLaunchClaims(ctx, cause, o, created)
	if err != nil {
		return fmt.Errorf("reading NodeClaims to launch: %w", err)
	}
	return s.launchEach(ctx, cause, o, claims)
}

// launchEach admits the claims of each intent, and requests the launch of an intent as soon as its claims are admitted:
// the first instances need not wait for the claims of the last intent. If the queue fails, the remaining intents are not
// requested.
func (s *Service) launchEach(ctx context.Context, cause *event.Envelope, o outbox.Outbox, claims []*karpenter.NodeClaim) error {
	present, intents := admission.CountPresent(claims), groupByIntent(claims)
	// indexes has the claims in the order of the intents, and handled how many of each intent are handled.
	var indexes []int
	handled, queueFails := make([]atomic.Int64, len(intents)), atomic.Bool{}
	intentOf := make([]int, len(claims))
	for n, members := range intents {
		for _, i := range members {
			indexes, intentOf[i] = append(indexes, i), n
		}
	}
	return errors.Join(s.executor.ForEach(len(indexes), func(at int) error {
		i := indexes[at]
		err := s.admitPresent(ctx, cause, o, present, &claims[i])
		n := intentOf[i]
		if handled[n].Add(1) < int64(len(intents[n])) || queueFails.Load() {
			return err
		}
		members := make([]*karpenter.NodeClaim, len(intents[n]))
		for k, member := range intents[n] {
			members[k] = claims[member]
		}
		failed := s.requestLaunches(ctx, cause, members)
		if failed != nil && !fault.Is(failed, fault.Bug) {
			queueFails.Store(true)
		}
		return errors.Join(err, failed)
	})...)
}

// admitPresent admits a claim that awaits it and stores the result in the claim, or deletes the claim if others of its
// intent are missing.
func (s *Service) admitPresent(ctx context.Context, cause *event.Envelope, o outbox.Outbox, present admission.Counts, claim **karpenter.NodeClaim) error {
	switch {
	case !awaitsAdmission(o, *claim):
		return nil
	case !present.Complete(*claim):
		return s.executor.Execute(ctx, cause, nodeclaim.DeletePartial(*claim))
	}
	admitted, err := s.admitClaim(ctx, cause, *claim)
	if err == nil {
		*claim = admitted
	}
	return err
}

// groupByIntent returns the indexes of the claims of each intent, in the order of their first claims.
func groupByIntent(claims []*karpenter.NodeClaim) [][]int {
	groups, known := [][]int{}, map[string]int{}
	for i, c := range claims {
		intent := c.Annotations[launchspec.IntentTag]
		n, is := known[intent]
		if !is {
			n, known[intent], groups = len(groups), len(groups), append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// awaitsAdmission reports whether the outbox allows the launch of the claim and it is not admitted yet.
func awaitsAdmission(o outbox.Outbox, c *karpenter.NodeClaim) bool {
	return c.IsManaged() && o.AllowsLaunch(c.Name, c.UID) && !admission.IsAdmitted(c) && c.DeletionTimestamp == nil
}

// listLaunchClaims returns the created claims and the other claims of the cache, if no other claim awaits admission: a
// created claim that has changed since is not admitted, because its version is another. Else it lists all claims
// from the API server: for a plan, because the cache may not contain the new claims yet, and in a reconcile if a cached
// claim awaits admission.
func (s *Service) listLaunchClaims(ctx context.Context, cause *event.Envelope, o outbox.Outbox, created []*karpenter.NodeClaim) ([]*karpenter.NodeClaim, error) {
	if claims, known := s.addCreated(o, created); known {
		return claims, nil
	}
	if cause == nil && !slices.ContainsFunc(cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims), func(c *karpenter.NodeClaim) bool { return awaitsAdmission(o, c) }) {
		return nil, nil
	}
	return cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
}

// addCreated returns the claims of the cache with the created ones. It is false if the outbox lists another claim that is
// not known to be admitted.
func (s *Service) addCreated(o outbox.Outbox, created []*karpenter.NodeClaim) ([]*karpenter.NodeClaim, bool) {
	known, claims := make(map[string]bool, len(created)), slices.Clone(created)
	for _, c := range created {
		known[c.Name] = true
	}
	for _, c := range cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims) {
		if !known[c.Name] {
			claims = append(claims, c)
			known[c.Name] = admission.IsAdmitted(c)
		}
	}
	return claims, len(created) > 0 && !slices.ContainsFunc(o.Claims, func(name string) bool { return !known[name] })
}

// checkNodeClass returns why the claim's node class cannot launch instances now, or "". The class
// was ready when the plan was made. The cache may be stale, so it is used only if the class is
// Ready in it.
func (s *Service) checkNodeClass(ctx context.Context, c *karpenter.NodeClaim) (string, error) {
	ref := c.Spec.NodeClassRef
	if ref == nil {
		return "", nil
	}
	key := cluster.Key{Name: ref.Name}
	if object, found := s.Cache.Get(cluster.NodeClasses, key); found && notReadyReason(object.(*karpenter.EC2NodeClass)) == "" {
		return "", nil
	}
	class, err := cluster.Get[*karpenter.EC2NodeClass](ctx, s.Client, cluster.NodeClasses, key)
	if fault.Is(err, fault.Missing) {
		return fmt.Sprintf("there is no EC2NodeClass %q", ref.Name), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the EC2NodeClass of NodeClaim %s: %w", c.Name, err)
	}
	return notReadyReason(class), nil
}

func notReadyReason(class *karpenter.EC2NodeClass) string {
	ready, _ := class.Status.Conditions.Get(karpenter.ConditionTypeReady)
	if ready.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("EC2NodeClass %q is not ready: %s", class.Name, ready.Message)
}

// rejectClaim returns the effects that report and delete a claim for which nothing was launched.
func rejectClaim(c *karpenter.NodeClaim, why string, now time.Time) []effect.Effect {
	return []effect.Effect{
		events.NodeClassNotReady.About(cluster.NodeClaims, c, now, "NodeClaim %s event: %s", c.Name, why),
		effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: why},
	}
}

// admitClaim marks the claim as admitted and returns it as stored. If its node class is no longer
// ready, the claim is deleted instead. If the write is lost, the claim stays unmarked and must not
// be launched, because unmarked claims are deleted without a check for instances.
func (s *Service) admitClaim(ctx context.Context, cause *event.Envelope, claim *karpenter.NodeClaim) (*karpenter.NodeClaim, error) {
	why, err := s.checkNodeClass(ctx, claim)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return claim, s.executor.Execute(ctx, cause, rejectClaim(claim, why, s.Now())...)
	}
	marked := claim.DeepCopy()
	annotateObject(marked, admission.AdmittedAnnotation, s.Now().UTC().Format(time.RFC3339))
	stored, err := s.Client.Update(ctx, marked)
	if fault.Is(err, fault.Conflict, fault.Missing) {
		return claim, nil
	}
	if err != nil {
		return nil, fmt.Errorf("admitting NodeClaim %s: %w", claim.Name, err)
	}
	return stored.(*karpenter.NodeClaim), nil
}

// requestLaunches sends launch.requested for each intent with a claim to launch, at most once per
// resendInterval and only while all of its claims exist. The message of an intent is always the
// same. A claim with invalid annotations does not stop the others. If the queue fails, the
// remaining requests are not attempted.
func (s *Service) requestLaunches(ctx context.Context, cause *event.Envelope, claims []*karpenter.NodeClaim) error {
	now, admitted := s.Now(), admission.CountAdmitted(claims)
	var failures []error
	for _, claim := range claims {
		if !isLaunchable(claim, now) {
			continue
		}
		request, err := parseLaunchRequest(claim)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if !admitted.Complete(claim) || !s.allowAction("launch/"+request.Intent, resendInterval) {
			continue
		}
		if err := s.executor.Execute(ctx, causeOfLaunch(cause, claim), effect.Send{Body: request}); err != nil {
			s.throttle.reset("launch/" + request.Intent)
			failures = append(failures, err)
			if !fault.Is(err, fault.Bug) {
				break
			}
		}
	}
	return errors.Join(failures...)
}

// isLaunchable reports whether the claim's launch has to be requested now.
func isLaunchable(c *karpenter.NodeClaim, now time.Time) bool {
	return c.IsManaged() && admission.IsAdmitted(c) && c.Status.ProviderID == "" && c.DeletionTimestamp == nil && c.Annotations[RefusedAnnotation] == "" &&
		now.Sub(c.CreationTimestamp.Time) < nodeclaim.LaunchTimeout
}

// parseLaunchRequest reads the launch request from a claim's annotations.
func parseLaunchRequest(c *karpenter.NodeClaim) (event.LaunchRequested, error) {
	ref, err := launchspec.ParseRef(c.Annotations[launchspec.IntentRefAnnotation])
	if err != nil {
		return event.LaunchRequested{}, fmt.Errorf("reading the intent of NodeClaim %s: %w", c.Name, err)
	}
	count, err := strconv.Atoi(c.Annotations[launchspec.ClaimsAnnotation])
	if err != nil {
		return event.LaunchRequested{}, fmt.Errorf("reading annotation %s of NodeClaim %s: %w", launchspec.ClaimsAnnotation, c.Name, err)
	}
	return event.LaunchRequested{Intent: c.Annotations[launchspec.IntentTag], IntentRef: ref, Claims: count}, nil
}
