package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Role is a service's role, as IAM's simulator judges it.
type Role struct {
	// Service has it; the scheduler has one as well.
	Service, Name string
	Missing       bool
	// Refused is what of the service's card it may not do.
	Refused []Refusal
}

// Refusal is one action on one resource that a role is not allowed.
type Refusal struct {
	Action, Resource string
	// Explicit says that a statement denies it. Else none allows it.
	Explicit bool
}

// Names are the ARNs of the services' roles, and for which of them that is known: by the
// function that runs with it or takes it, or by the ServiceAccount's annotation or
// association. Else it is the name that the stack gives.
func (f Facts) Names(services []string) (arns map[string]string, sure map[string]bool) {
	arns, sure = map[string]string{}, map[string]bool{}
	for _, service := range services {
		arns[service] = f.Place.Role(f.role(service))
		switch fn := f.Functions[service]; {
		case fn == nil || fn.Shared != nil && !fn.Shared.Told:
		case fn.takesRole():
			arns[service], sure[service] = fn.Shared.Role, true
		case fn.Role != "":
			arns[service], sure[service] = fn.Role, true
		}
	}
	// No setting names the scheduler's otherwise, and nothing else tells of it.
	sure[topology.Scheduler] = arns[topology.Scheduler] != ""
	for _, a := range f.Accounts {
		arn := a.Role
		// An association with another service's role is a finding by itself.
		if arn == "" && a.Pod != nil && path.Base(a.Pod.Role) == f.role(a.Service) {
			arn = a.Pod.Role
		}
		if arn != "" && a.Service != "" {
			arns[a.Service], sure[a.Service] = arn, true
		}
	}
	return arns, sure
}

// shownRefusals is how many refusals a finding lists: one is enough to see which
// statement is lacking, and all would be a policy.
const shownRefusals = 3

// checkRights finds services that may not do what their cards say.
func checkRights(f Facts) []Finding {
	var all []Finding
	for _, r := range f.Roles {
		subject := "role/" + r.Name
		if r.Missing {
			all = append(all, newProblem("role-missing", subject, "the role does not exist, but the settings of the "+r.Service+" name it: "+describeLoss(r.Service), deploy))
			continue
		}
		if len(r.Refused) == 0 {
			continue
		}
		var list []string
		for _, one := range r.Refused[:min(len(r.Refused), shownRefusals)] {
			list = append(list, one.Action+" on "+one.Resource)
		}
		what := "the IAM policy simulator denies " + strings.Join(list, ", ")
		if more := len(r.Refused) - shownRefusals; more > 0 {
			what += fmt.Sprintf(", and %d more permissions of the service", more)
		}
		fix := deploy
		if slices.ContainsFunc(r.Refused, func(one Refusal) bool { return one.Explicit }) {
			what += "; the role, its permissions boundary or the organization has a Deny statement"
			fix = "remove the Deny statement: aws iam get-role --role-name " + r.Name + " shows the boundary, aws iam list-attached-role-policies and list-role-policies show the policies"
		}
		// No call of the simulator's is named: without the keys of conditions that were asked
		// with, it refuses what is allowed.
		all = append(all, newProblem("role-refused", subject, what+": the "+r.Service+" fails when it uses them", fix+"; then run joist doctor --cluster "+f.Plan.Cluster+" again"))
	}
	return all
}

// describeLoss is what comes of it when a service's role is gone.
func describeLoss(service string) string {
	if service == topology.Scheduler {
		return "no ticks are sent"
	}
	return "the service gets no credentials"
}
