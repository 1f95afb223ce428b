package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Role is a service's role with the results of IAM's policy simulator.
type Role struct {
	// Service is the service of the role, or the scheduler.
	Service, Name string
	Missing       bool
	// Denied are the needed permissions that the role does not have.
	Denied []DeniedAction
}

// DeniedAction is an action on a resource that a role is not allowed.
type DeniedAction struct {
	Action, Resource string
	// IsExplicit reports that a Deny statement matches. Otherwise no statement allows the action.
	IsExplicit bool
}

// RoleARNs returns the ARNs of the services' roles, and for which of them the ARN is certain:
// from the function's configuration, or from the ServiceAccount's annotation or association.
// The others have the name that the stack gives.
func (f Facts) RoleARNs(services []string) (arns map[string]string, sure map[string]bool) {
	arns, sure = map[string]string{}, map[string]bool{}
	for _, service := range services {
		arns[service] = f.Location.RoleARN(f.roleName(service))
		switch fn := f.Functions[service]; {
		case fn == nil || fn.Shared != nil && !fn.Shared.HasEntry:
		case fn.takesRole():
			arns[service], sure[service] = fn.Shared.Role, true
		case fn.Role != "":
			arns[service], sure[service] = fn.Role, true
		}
	}
	// The stack always names the scheduler's role.
	sure[topology.Scheduler] = arns[topology.Scheduler] != ""
	for _, a := range f.Accounts {
		arn := a.Role
		// checkPodIdentity reports an association with another role.
		if arn == "" && a.PodIdentity != nil && path.Base(a.PodIdentity.Role) == f.roleName(a.Service) {
			arn = a.PodIdentity.Role
		}
		if arn != "" && a.Service != "" {
			arns[a.Service], sure[a.Service] = arn, true
		}
	}
	return arns, sure
}

// shownDenials is the number of denied actions in a finding: one is enough to identify the
// missing statement.
const shownDenials = 3

// checkPermissions finds services whose roles lack permissions of their cards.
func checkPermissions(f Facts) []Finding {
	var all []Finding
	for _, r := range f.Roles {
		subject := "role/" + r.Name
		if r.Missing {
			all = append(all, newProblem("role-missing", subject, "the role does not exist, but the settings of the "+r.Service+" name it: "+describeLoss(r.Service), deployFix))
			continue
		}
		if len(r.Denied) == 0 {
			continue
		}
		var list []string
		for _, one := range r.Denied[:min(len(r.Denied), shownDenials)] {
			list = append(list, one.Action+" on "+one.Resource)
		}
		what := "the IAM policy simulator denies " + strings.Join(list, ", ")
		if more := len(r.Denied) - shownDenials; more > 0 {
			what += fmt.Sprintf(", and %d more permissions of the service", more)
		}
		fix := deployFix
		if slices.ContainsFunc(r.Denied, func(one DeniedAction) bool { return one.IsExplicit }) {
			what += "; the role, its permissions boundary or the organization has a Deny statement"
			fix = "remove the Deny statement: aws iam get-role --role-name " + r.Name + " shows the boundary, aws iam list-attached-role-policies and list-role-policies show the policies"
		}
		// The fix names no simulator call: without the same condition keys its result differs.
		all = append(all, newProblem("role-permissions-missing", subject, what+": the "+r.Service+" fails when it uses them", fix+"; then run joist doctor --cluster "+f.Plan.Cluster+" again"))
	}
	return all
}

// describeLoss describes the effect of a missing role.
func describeLoss(service string) string {
	if service == topology.Scheduler {
		return "no ticks are sent"
	}
	return "the service gets no credentials"
}
