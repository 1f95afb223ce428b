package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/launcher/internal/dryrun"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// validateNodeClass makes the dry runs of a node class. It gives what they refused,
// nil when nothing; an error says that EC2 did not answer definitely. As upstream
// does, it makes the template in earnest, for a dry run must name one; it is swept
// like any other.
func (s Service) validateNodeClass(ctx context.Context, b event.NodeClassEnsure) (*event.Problem, error) {
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
	script, err := dryrun.BuildRequests(&class, s.Cluster.Name, b.Tenancy)
	if err != nil {
		return dryRunProblem(event.DependenciesNotReady, "", err)
	}
	// By what is tried and not by the object, whose conditions change all the time.
	text, err := json.Marshal(script)
	if err != nil {
		return nil, fault.E("naming a rehearsal", fault.Bug, err)
	}
	known := b.UID + "/" + string(event.DigestOf(text))
	if s.Cache.hasPassedDryRun(known, s.Now()) {
		return nil, nil
	}
	problem, err := s.performDryRuns(ctx, script)
	if problem == nil && err == nil {
		s.Cache.storeDryRun(known, s.Now())
	}
	return addTagHint(problem, class.Spec.Tags), err
}

// addTagHint adds what may be behind a refusal that names no cause: IAM says that
// something was denied, and not which condition did it. A stack that lists the keys
// which spec.tags may have (nodeTags) denies every other.
func addTagHint(problem *event.Problem, tags map[string]string) *event.Problem {
	if problem == nil || problem.Reason == event.DependenciesNotReady || len(tags) == 0 {
		return problem
	}
	problem.Message += "; if the stack of the cluster lists nodeTags, see whether it has each key of spec.tags: " + strings.Join(slices.Sorted(maps.Keys(tags)), ", ")
	return problem
}

// performDryRuns tries one call after the other, for each needs what the one before
// would make.
func (s Service) performDryRuns(ctx context.Context, script dryrun.Requests) (*event.Problem, error) {
	const template, fleet, run = "ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"
	err := s.DryRun.TryTemplate(ctx, script.Template)
	if err == nil {
		err = s.EC2.EnsureTemplate(ctx, script.Template)
	}
	if err != nil {
		return dryRunProblem(event.CreateLaunchTemplateAuthCheckFailed, template, err)
	}
	if err := s.DryRun.TryFleet(ctx, script.Fleet); err != nil {
		return dryRunProblem(event.CreateFleetAuthCheckFailed, fleet, err)
	}
	var first error
	for _, request := range script.Runs {
		err := s.DryRun.TryRun(ctx, request)
		if err == nil {
			return nil, nil
		}
		if first == nil {
			first = err
		}
	}
	return dryRunProblem(event.RunInstancesAuthCheckFailed, run, first)
}

// dryRunProblem tells a refusal from what may pass. Denial has upstream's reason; that
// something does not exist, or does not fit, is said in EC2's words.
func dryRunProblem(reason, action string, err error) (*event.Problem, error) {
	problem := &event.Problem{Condition: karpenter.ConditionTypeValidationSucceeded, Reason: reason, Message: err.Error()}
	switch {
	case fault.Is(err, fault.Denied):
		problem.Message = "Controller isn't authorized to call " + action + ": " + err.Error()
	case fault.Is(err, fault.Invalid, fault.Missing) && !isPropagating(err):
		problem.Reason = event.DependenciesNotReady
	default:
		return nil, err
	}
	return problem, nil
}

// isPropagating reports whether EC2 does not know yet what was made a moment ago.
func isPropagating(err error) bool {
	code := cloud.Code(err)
	return code == codeTemplateNotFound || code == "InvalidParameterValue" && strings.Contains(innermostText(err), "iamInstanceProfile")
}

// innermostText is the innermost text, which is AWS's own.
func innermostText(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err.Error()
}
