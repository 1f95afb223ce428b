package launcher

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/launcher/internal/dryrun"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// validateNodeClass makes the dry runs of a node class. It returns EC2's rejection, or nil; an
// error means that EC2 gave no definite answer. Like Karpenter, it really creates the launch
// template, because the dry runs of launches must name one. The template is deleted by age like any
// other.
func (s Service) validateNodeClass(ctx context.Context, b event.NodeClassEnsure) (*event.Problem, error) {
	var class karpenter.EC2NodeClass
	if err := json.Unmarshal(b.Class, &class); err != nil {
		return nil, fault.E("reading EC2NodeClass "+b.Name, fault.Invalid, err)
	}
	if class.Name == "" {
		class.Name = b.Name
	}
	if class.Status.InstanceProfile == "" {
		// The status may not have the profile that was just created.
		class.Status.InstanceProfile = b.Profile
	}
	requests, err := dryrun.BuildRequests(&class, s.Cluster.Name, b)
	if err != nil {
		return dryRunProblem(event.DependenciesNotReady, "", err)
	}
	// The cache key has the requests and not the object, because its conditions change often.
	text, err := json.Marshal(requests)
	if err != nil {
		return nil, fault.E("encoding the dry runs of EC2NodeClass "+b.Name, fault.Bug, err)
	}
	key := b.UID + "/" + string(event.DigestOf(text))
	if s.Cache.hasPassedDryRun(key, s.Now()) {
		return nil, nil
	}
	problem, err := s.performDryRuns(ctx, requests)
	switch profile := class.Spec.InstanceProfile; {
	case problem == nil && err == nil:
		s.Cache.storeDryRun(key, s.Now())
	case profile != nil && *profile != "" && isProfileMissing(err):
		// Only a profile that the user named is reported: a profile that the launcher created is not visible
		// for some seconds.
		return &event.Problem{
			Condition: karpenter.ConditionTypeValidationSucceeded, Reason: event.InstanceProfileNotFound,
			Message: fmt.Sprintf("Instance profile %q not found", *profile),
		}, nil
	}
	return addTagHint(problem, class.Spec.Tags), err
}

// addTagHint adds a possible cause to a denied dry run: IAM does not name the condition
// that failed, and a stack with nodeTags denies other keys of spec.tags.
func addTagHint(problem *event.Problem, tags map[string]string) *event.Problem {
	if problem == nil || problem.Reason == event.DependenciesNotReady || len(tags) == 0 {
		return problem
	}
	problem.Message += "; if the cluster's stack sets nodeTags, check that it lists each key of spec.tags: " + strings.Join(slices.Sorted(maps.Keys(tags)), ", ")
	return problem
}

// performDryRuns makes the calls in their order and stops at the first rejection. One successful
// run is enough. That EC2 does not offer the instance type is no rejection of the class, because its
// launches may use other types.
func (s Service) performDryRuns(ctx context.Context, requests dryrun.Requests) (*event.Problem, error) {
	const template, fleet, run = "ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"
	err := s.DryRun.TryTemplate(ctx, requests.Template)
	if err == nil {
		err = s.EC2.EnsureTemplate(ctx, requests.Template)
	}
	if err != nil {
		return dryRunProblem(event.CreateLaunchTemplateAuthCheckFailed, template, err)
	}
	if err := s.DryRun.TryFleet(ctx, requests.Fleet); err != nil && !isNotOffered(err) {
		return dryRunProblem(event.CreateFleetAuthCheckFailed, fleet, err)
	}
	var first error
	for _, request := range requests.Runs {
		err := s.DryRun.TryRun(ctx, request)
		if err == nil {
			return nil, nil
		}
		if first == nil && !isNotOffered(err) {
			first = err
		}
	}
	if first == nil {
		host.AddLogFields(ctx, "dry_run_type_not_offered", requests.Runs[0].InstanceType)
		return nil, nil
	}
	return dryRunProblem(event.RunInstancesAuthCheckFailed, run, first)
}

// dryRunProblem converts a definite rejection into a condition of the class, with Karpenter's
// reason if EC2 denied the call. It returns other errors unchanged.
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

// isNotOffered reports whether EC2 rejected the instance type: the region or the zone does not offer it,
// or not with the other settings of the launch.
func isNotOffered(err error) bool {
	switch text := err.Error(); cloud.Code(err) {
	case "Unsupported", "InvalidInstanceType":
		return true
	case "InvalidParameterValue":
		return strings.Contains(text, "for InstanceType") || strings.Contains(text, "instance types do not exist")
	case "InvalidFleetConfiguration":
		return strings.Contains(text, "is not supported in your requested Availability Zone")
	default:
		return false
	}
}

// isPropagating reports whether EC2 does not find the launch template or the instance profile that
// was just created.
func isPropagating(err error) bool {
	return cloud.Code(err) == codeTemplateNotFound || isProfileMissing(err)
}

// isProfileMissing reports whether EC2 does not find the instance profile.
func isProfileMissing(err error) bool {
	return cloud.Code(err) == "InvalidParameterValue" && strings.Contains(err.Error(), "iamInstanceProfile")
}
