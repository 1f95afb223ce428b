package launcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// ensure makes or removes the instance profile of a node class. A refusal that
// a person has to mend becomes a condition of the node class, not a retry loop;
// only a removal that succeeded is said to be one, for it lets the node class go.
func (s Service) ensure(ctx context.Context, e event.Envelope, b event.NodeClassEnsure) error {
	err := s.profile(ctx, b)
	done := event.NodeClassEnsured{Name: b.Name, UID: b.UID, Role: b.Role, Profile: b.Profile, Deleted: b.Delete, Asked: b.Asked}
	if fault.Is(err, fault.Denied, fault.Invalid, fault.Missing) {
		done.Deleted = false
		done.Problem = &event.Problem{Condition: "InstanceProfileReady", Reason: "InstanceProfileRefused", Message: err.Error()}
		err = nil
	}
	if err != nil {
		return fmt.Errorf("ensuring instance profile %s: %w", b.Profile, err)
	}
	return s.publish(ctx, e, done)
}

func (s Service) profile(ctx context.Context, b event.NodeClassEnsure) error {
	switch {
	case s.Profiles == nil:
		return fault.E("ensuring instance profile "+b.Profile, fault.Denied, errors.New("this launcher may not write IAM")).
			WithHint("set spec.instanceProfile on EC2NodeClass %s, or give the launcher the iam actions", b.Name)
	case b.Delete:
		return s.Profiles.DeleteProfile(ctx, b.Profile)
	default:
		return s.Profiles.EnsureProfile(ctx, cloud.Profile{Name: b.Profile, Path: b.Path, Role: b.Role, Tags: b.Tags})
	}
}
