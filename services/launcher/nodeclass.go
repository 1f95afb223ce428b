package launcher

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ensureNodeClass keeps what AWS has for a node class: the instance profile of its role,
// and whether EC2 would let us launch for it. A refusal that a person has to mend
// becomes a condition of the class and no retry loop; what AWS did not answer is
// asked again.
func (s Service) ensureNodeClass(ctx context.Context, e event.Envelope, b event.NodeClassEnsure) error {
	done := event.NodeClassEnsured{
		Name: b.Name, UID: b.UID, Role: b.Role, Profile: b.Profile, Generation: b.Generation, Asked: b.Asked,
	}
	if b.Delete {
		return s.deleteNodeClass(ctx, e, b, done)
	}
	// with an instance profile of the user's own no IAM call is made.
	if b.Role != "" {
		problem, err := profileProblem(s.ensureProfile(ctx, b))
		if err != nil {
			return fmt.Errorf("ensuring instance profile %s: %w", b.Profile, err)
		}
		done.Problem = problem
	} else if b.Former != "" {
		left, err := s.retireProfiles(ctx, b)
		if err != nil {
			// What is left over costs nothing and is looked at again.
			host.Say(ctx, "profile_sweep", err.Error())
		}
		done.Retired = err == nil && !left
	}
	if done.Problem == nil && len(b.Class) > 0 && s.DryRun != nil {
		invalid, err := s.validateNodeClass(ctx, b)
		if err != nil {
			// The profile must not wait for EC2.
			host.Say(ctx, "rehearsal", err.Error())
		}
		done.Validated, done.Invalid = err == nil, invalid
	}
	return s.publishFact(ctx, e, done)
}

// deleteNodeClass removes what was made for a class that is going away. Only a
// removal that succeeded is said to be one, for it lets the class go.
func (s Service) deleteNodeClass(ctx context.Context, e event.Envelope, b event.NodeClassEnsure, done event.NodeClassEnsured) error {
	key, value := s.ownerTag()
	tags := map[string]string{key: value, karpenter.NodeClassTagKey: b.Name}
	err := s.deleteTemplates(ctx, tags, func(cloud.TemplateInfo) bool { return true })
	if err == nil && (b.Role != "" || b.Former != "") {
		err = s.deleteProfiles(ctx, b)
	}
	problem, err := profileProblem(err)
	if err != nil {
		return fmt.Errorf("removing what EC2NodeClass %s had: %w", b.Name, err)
	}
	done.Problem, done.Deleted = problem, problem == nil
	return s.publishFact(ctx, e, done)
}

// profileProblem turns an error that only a person can mend into what the class says.
func profileProblem(err error) (*event.Problem, error) {
	if !fault.Is(err, fault.Denied, fault.Invalid, fault.Missing, fault.Foreign) {
		return nil, err
	}
	return &event.Problem{Condition: karpenter.ConditionTypeInstanceProfileReady, Reason: "InstanceProfileRefused", Message: err.Error()}, nil
}
