package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/launcher/internal/rehearsal"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// rehearse makes the dry runs of a node class. It gives what they refused,
// nil when nothing; an error says that EC2 did not answer definitely. As upstream
// does, it makes the template in earnest, for a dry run must name one; it is swept
// like any other.
func (s Service) rehearse(ctx context.Context, b event.NodeClassEnsure) (*event.Problem, error) {
	var class karpenter.EC2NodeClass
	if err := json.Unmarshal(b.Class, &class); err != nil {
		return nil, fault.E("reading EC2NodeClass "+b.Name, fault.Invalid, err)
	}
	if class.Name == "" {
		class.Name = b.Name
	}
	if class.Status.InstanceProfile == "" {
		// The profile that was just ensured need not be in the status yet.
		class.Status.InstanceProfile = b.Profile
	}
	script, err := rehearsal.Write(&class, s.Cluster.Name, b.Tenancy)
	if err != nil {
		return refused(event.DependenciesNotReady, "", err)
	}
	// By what is tried and not by the object, whose conditions change all the time.
	text, err := json.Marshal(script)
	if err != nil {
		return nil, fault.E("naming a rehearsal", fault.Bug, err)
	}
	known := b.UID + "/" + string(event.DigestOf(text))
	if s.Memory.sure(known, s.Now()) {
		return nil, nil
	}
	problem, err := s.perform(ctx, script)
	if problem == nil && err == nil {
		s.Memory.assured(known, s.Now())
	}
	return suspected(problem, class.Spec.Tags), err
}

// suspected adds what may be behind a refusal that names no cause: IAM says that
// something was denied, and not which condition did it. A stack that lists the keys
// which spec.tags may have (nodeTags) denies every other.
func suspected(problem *event.Problem, tags map[string]string) *event.Problem {
	if problem == nil || problem.Reason == event.DependenciesNotReady || len(tags) == 0 {
		return problem
	}
	problem.Message += "; if the stack of the cluster lists nodeTags, see whether it has each key of spec.tags: " + strings.Join(slices.Sorted(maps.Keys(tags)), ", ")
	return problem
}

// perform tries one call after the other, for each needs what the one before
// would make.
func (s Service) perform(ctx context.Context, script rehearsal.Script) (*event.Problem, error) {
	const template, fleet, run = "ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"
	err := s.Rehearsal.TryTemplate(ctx, script.Template)
	if err == nil {
		err = s.EC2.EnsureTemplate(ctx, script.Template)
	}
	if err != nil {
		return refused(event.CreateLaunchTemplateAuthCheckFailed, template, err)
	}
	if err := s.Rehearsal.TryFleet(ctx, script.Fleet); err != nil {
		return refused(event.CreateFleetAuthCheckFailed, fleet, err)
	}
	var first error
	for _, request := range script.Runs {
		err := s.Rehearsal.TryRun(ctx, request)
		if err == nil {
			return nil, nil
		}
		if first == nil {
			first = err
		}
	}
	return refused(event.RunInstancesAuthCheckFailed, run, first)
}

// refused tells a refusal from what may pass. Denial has upstream's reason; that
// something does not exist, or does not fit, is said in EC2's words.
func refused(reason, action string, err error) (*event.Problem, error) {
	problem := &event.Problem{Condition: karpenter.ConditionTypeValidationSucceeded, Reason: reason, Message: err.Error()}
	switch {
	case fault.Is(err, fault.Denied):
		problem.Message = "Controller isn't authorized to call " + action + ": " + err.Error()
	case fault.Is(err, fault.Invalid, fault.Missing) && !fresh(err):
		problem.Reason = event.DependenciesNotReady
	default:
		return nil, err
	}
	return problem, nil
}

// fresh reports whether EC2 does not know yet what was made a moment ago.
func fresh(err error) bool {
	code := cloud.Code(err)
	return code == templateGone || code == "InvalidParameterValue" && strings.Contains(textOf(err), "iamInstanceProfile")
}

// textOf is the innermost text, which is AWS's own.
func textOf(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err.Error()
}
