package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// resend is how often an unsettled question is asked again.
	resend = 30 * time.Second
)

// launch lets the claims of a plan that is done be launched, and asks for it. A
// claim that cannot be written holds up nothing but itself.
func (s *Service) launch(ctx context.Context, cause *event.Envelope, o outbox.Outbox) error {
	if o.State != outbox.Done {
		return nil
	}
	claims, err := s.claimsNow(ctx, cause, o)
	if err != nil {
		return fmt.Errorf("reading NodeClaims to launch: %w", err)
	}
	present := admission.CountPresent(claims)
	failures := s.do.Each(len(claims), func(i int) error {
		if !waits(o, claims[i]) {
			return nil
		}
		if !present.Complete(claims[i]) {
			return s.do.Do(ctx, cause, deletePartial(claims[i]))
		}
		admitted, err := s.letIn(ctx, cause, claims[i])
		if err == nil {
			claims[i] = admitted
		}
		return err
	})
	return errors.Join(append(failures, s.ask(ctx, cause, claims))...)
}

// waits reports whether a claim is to be admitted.
func waits(o outbox.Outbox, c *karpenter.NodeClaim) bool {
	return o.Lists(c.Name) && !admission.IsAdmitted(c) && c.DeletionTimestamp == nil
}

// deletePartial removes a claim of an intent of which other claims are missing.
func deletePartial(c *karpenter.NodeClaim) effect.Delete {
	return effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "other NodeClaims of its launch are gone", Read: c}
}

// claimsNow reads all claims as they are now, behind a plan, which made some a moment
// ago that the cache may not show, and in a look when one waits to be admitted. One that
// the cache does not show yet is there at the next look.
func (s *Service) claimsNow(ctx context.Context, cause *event.Envelope, o outbox.Outbox) ([]*karpenter.NodeClaim, error) {
	if cause == nil && !slices.ContainsFunc(cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims), func(c *karpenter.NodeClaim) bool { return waits(o, c) }) {
		return nil, nil
	}
	return cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
}

// unready says why nothing can be launched for the claim's node class by now, or
// "". It was ready when the plan was made, so that the cache, which may be
// behind, is believed only where it says so still.
func (s *Service) unready(ctx context.Context, c *karpenter.NodeClaim) (string, error) {
	ref := c.Spec.NodeClassRef
	if ref == nil {
		return "", nil
	}
	key := cluster.Key{Name: ref.Name}
	if object, found := s.Cache.Get(cluster.NodeClasses, key); found && notReady(object.(*karpenter.EC2NodeClass)) == "" {
		return "", nil
	}
	class, err := cluster.Get[*karpenter.EC2NodeClass](ctx, s.Client, cluster.NodeClasses, key)
	if fault.Is(err, fault.Missing) {
		return fmt.Sprintf("there is no EC2NodeClass %q", ref.Name), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the EC2NodeClass of NodeClaim %s: %w", c.Name, err)
	}
	return notReady(class), nil
}

func notReady(class *karpenter.EC2NodeClass) string {
	ready, _ := class.Status.Conditions.Get(karpenter.ConditionTypeReady)
	if ready.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("EC2NodeClass %q is not ready: %s", class.Name, ready.Message)
}

// turnedAway lets a claim go for which nothing was launched yet.
func turnedAway(c *karpenter.NodeClaim, why string, now time.Time) []effect.Effect {
	return []effect.Effect{
		events.NodeClassNotReady.About(cluster.NodeClaims, c, now, "NodeClaim %s event: %s", c.Name, why),
		effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: why},
	}
}

// letIn writes down that the claim may be launched, and gives it as it is then;
// one whose node class is not ready any more goes instead. A swap that was lost
// leaves it as it was: what is not written may not be launched, for a claim
// without the mark is let go as one that never was.
func (s *Service) letIn(ctx context.Context, cause *event.Envelope, claim *karpenter.NodeClaim) (*karpenter.NodeClaim, error) {
	why, err := s.unready(ctx, claim)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return claim, s.do.Do(ctx, cause, turnedAway(claim, why, s.Now())...)
	}
	marked := claim.DeepCopy()
	annotate(marked, admission.AdmittedAnnotation, s.Now().UTC().Format(time.RFC3339))
	stored, err := s.Client.Update(ctx, marked)
	if fault.Is(err, fault.Conflict, fault.Missing) {
		return claim, nil
	}
	if err != nil {
		return nil, fmt.Errorf("admitting NodeClaim %s: %w", claim.Name, err)
	}
	return stored.(*karpenter.NodeClaim), nil
}

// ask sends launch.requested for every intent that has a claim to be launched,
// at most once in resend, while all of its claims exist. The same intent is always the same message. A claim
// whose annotations were broken holds up nothing but itself; a queue that
// does not answer ends the round, for it would not answer the others either.
func (s *Service) ask(ctx context.Context, cause *event.Envelope, claims []*karpenter.NodeClaim) error {
	now, admitted := s.Now(), admission.CountAdmitted(claims)
	var failures []error
	for _, claim := range claims {
		if !launchable(claim, now) {
			continue
		}
		request, err := request(claim)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if !admitted.Complete(claim) || !s.due("launch/"+request.Intent, resend) {
			continue
		}
		if err := s.do.Do(ctx, launchStory(cause, claim), effect.Send{Body: request}); err != nil {
			s.asked.forget("launch/" + request.Intent)
			failures = append(failures, err)
			if !fault.Is(err, fault.Bug) {
				break
			}
		}
	}
	return errors.Join(failures...)
}

// launchable reports whether the claim's launch is to be asked for now.
func launchable(c *karpenter.NodeClaim, now time.Time) bool {
	return admission.IsAdmitted(c) && c.Status.ProviderID == "" && c.DeletionTimestamp == nil && c.Annotations[RefusedAnnotation] == "" &&
		now.Sub(c.CreationTimestamp.Time) < nodeclaim.LaunchTimeout
}

// request reads the launch request off a claim's annotations.
func request(c *karpenter.NodeClaim) (event.LaunchRequested, error) {
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
