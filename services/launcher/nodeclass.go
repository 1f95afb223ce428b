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

// maxIAMName is the maximum number of bytes of a role or a profile, which the answer repeats. IAM allows 512 characters for a path and 128
// for a name.
const maxIAMName = 700

// ensureNodeClass maintains the instance profile of a node class's role and checks with dry runs
// whether EC2 would launch its instances. A rejection that a user must fix becomes a condition of
// the class and is not retried here.
func (s Service) ensureNodeClass(ctx context.Context, e event.Envelope, b event.NodeClassEnsure) error {
	if len(b.Role) > maxIAMName || len(b.Profile) > maxIAMName {
		return fault.F("reading "+string(b.EventType()), fault.Poison, "role has %d bytes and profile %d, and the limit is %d", len(b.Role), len(b.Profile), maxIAMName)
	}
	result := event.NodeClassEnsured{
		Name: b.Name, UID: b.UID, Role: b.Role, Profile: b.Profile, Generation: b.Generation, Asked: b.Asked,
	}
	if b.Delete {
		return s.deleteNodeClass(ctx, e, b, result)
	}
	// Without a role, the class names its own instance profile: IAM is called only to
	// delete the profile of a former role.
	if b.Role != "" {
		problem, err := profileProblem(s.ensureProfile(ctx, b))
		if err != nil {
			return fmt.Errorf("ensuring instance profile %s: %w", b.Profile, err)
		}
		result.Problem = problem
	} else if b.Former != "" {
		remaining, err := s.retireProfiles(ctx, b)
		if err != nil {
			// Remaining profiles cost nothing; the next message retries.
			host.AddLogFields(ctx, "profile_cleanup_error", err.Error())
		}
		result.Retired = err == nil && !remaining
	}
	if result.Problem == nil && len(b.Class) > 0 && s.DryRun != nil {
		invalid, err := s.validateNodeClass(ctx, b)
		if err != nil {
			// The profile is ready although the dry runs failed.
			host.AddLogFields(ctx, "dry_run_error", err.Error())
		}
		result.Validated, result.Invalid = err == nil, invalid
	}
	return s.publishNodeClass(ctx, e, result)
}

// maxProblemMessage is the maximum number of bytes of a problem's message. An error of AWS may quote the request.
const maxProblemMessage = 4 << 10

// publishNodeClass publishes the answer, with the beginnings of its messages.
func (s Service) publishNodeClass(ctx context.Context, e event.Envelope, result event.NodeClassEnsured) error {
	for _, problem := range []*event.Problem{result.Problem, result.Invalid} {
		if problem != nil {
			problem.Message = fault.Truncate(problem.Message, maxProblemMessage)
		}
	}
	return s.publishFact(ctx, e, result)
}

// deleteNodeClass deletes the launch templates and instance profiles of a class that is
// being deleted. It sets Deleted only if all of that succeeded, because lifecycle then
// removes the finalizer.
func (s Service) deleteNodeClass(ctx context.Context, e event.Envelope, b event.NodeClassEnsure, result event.NodeClassEnsured) error {
	key, value := s.ownerTag()
	tags := map[string]string{key: value, karpenter.NodeClassTagKey: b.Name}
	err := s.deleteTemplates(ctx, tags, func(cloud.TemplateInfo) bool { return true })
	if err == nil && (b.Role != "" || b.Former != "") {
		err = s.deleteProfiles(ctx, b)
	}
	problem, err := profileProblem(err)
	if err != nil {
		return fmt.Errorf("deleting the resources of EC2NodeClass %s: %w", b.Name, err)
	}
	result.Problem, result.Deleted = problem, problem == nil
	return s.publishNodeClass(ctx, e, result)
}

// profileProblem converts an error that only a user can fix into a condition of the class. It
// returns other errors unchanged.
func profileProblem(err error) (*event.Problem, error) {
	if !fault.Is(err, fault.Denied, fault.Invalid, fault.Missing, fault.Foreign) {
		return nil, err
	}
	return &event.Problem{Condition: karpenter.ConditionTypeInstanceProfileReady, Reason: "InstanceProfileRefused", Message: err.Error()}, nil
}
