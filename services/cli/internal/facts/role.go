package facts

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// roleCheck is a set of permissions to simulate for one role.
type roleCheck struct {
	service, arn string
	// isKnown reports that the service certainly has this role; otherwise its name is assumed.
	isKnown     bool
	permissions []doctor.Permission
}

// simulateRoles starts simulations that check whether each role has the permissions that its
// service needs.
func (g *collector) simulateRoles(ctx context.Context, sofar doctor.Facts) {
	card := doctor.PermissionSet{
		Plan: g.Plan, Location: sofar.Location, Bucket: g.bucketName(sofar), Prefix: g.Prefix,
		NodeRole: sofar.NodeRoleARN(g.NodeRole), Profiles: sofar.HasRoleClasses, Functions: sofar.Functions,
		NoEKS: sofar.SelfManaged != nil, Reboots: sofar.RebootsNodes(),
	}
	client := iam.NewFromConfig(g.config)
	g.calls.Go(func() { g.runRoleChecks(ctx, client, listRoleChecks(sofar, card), card) })
}

// runRoleChecks runs all checks concurrently. An error for one role does not affect the
// results of the others.
func (g *collector) runRoleChecks(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, all []roleCheck, card doctor.PermissionSet) {
	roles, errs := make([]*doctor.Role, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { roles[i], errs[i] = one.simulatePolicy(ctx, client, card.BaseContext(one.service)) })
	}
	running.Wait()
	isNoted := false
	for i, err := range errs {
		if r := roles[i]; r != nil {
			g.setFact(func(f *doctor.Facts) { f.Roles = append(f.Roles, *r) })
		}
		if err == nil {
			continue
		}
		const action = "iam:SimulatePrincipalPolicy"
		what := "the permissions of the role " + path.Base(all[i].arn)
		err = awsfault.ReadCall("reading "+what, action).Wrap(err)
		// A missing permission and the timeout affect all roles: one note is enough.
		if fault.Is(err, fault.Denied) || errors.Is(err, context.DeadlineExceeded) {
			if isNoted {
				continue
			}
			isNoted, what = true, "the permissions of the roles"
		}
		g.recordSkipped(what, err, action)
	}
}

// listRoleChecks returns the checks of each service's role, and of the functions' roles that
// assume one.
func listRoleChecks(f doctor.Facts, card doctor.PermissionSet) []roleCheck {
	services := slices.Concat(topology.ExternalServices, topology.ClusterServices, []string{topology.Scheduler})
	names, sure := f.RoleARNs(services)
	var all []roleCheck
	for _, service := range services {
		all = append(all, roleCheck{service, names[service], sure[service], card.ServicePermissions(service)})
		if needs := card.AssumingPermissions(service); len(needs) > 0 {
			all = append(all, roleCheck{service, f.Functions[service].Role, true, needs})
		}
	}
	return all
}

// simulatePolicy simulates the permissions of a role. It returns nil for a missing role whose
// name is assumed, because the service may have another. It returns denied actions even if
// other calls failed.
func (i roleCheck) simulatePolicy(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, base map[string][]string) (*doctor.Role, error) {
	out := &doctor.Role{Service: i.service, Name: path.Base(i.arn)}
	var first error
	for _, ask := range groupPermissions(i.permissions, base) {
		refused, err := ask.simulateAll(ctx, client, i.arn)
		if isMissing(err) {
			if out.Missing = true; !i.isKnown {
				return nil, nil
			}
			return out, nil
		}
		first = cmp.Or(first, err)
		out.Denied = append(out.Denied, refused...)
	}
	slices.SortFunc(out.Denied, func(a, b doctor.DeniedAction) int { return strings.Compare(a.Action+a.Resource, b.Action+b.Resource) })
	return out, first
}

// simulation is one call of IAM's simulator. The result has every action on every resource; only
// the wanted pairs are read.
type simulation struct {
	actions, resources []string
	context            map[string][]string
	wanted             map[[2]string]bool
}

// groupPermissions returns the smallest number of calls: permissions share a call unless their
// condition keys conflict.
func groupPermissions(needs []doctor.Permission, base map[string][]string) []simulation {
	var out []simulation
	for _, need := range needs {
		at := slices.IndexFunc(out, func(q simulation) bool { return q.isCompatible(need.Context) })
		if at < 0 {
			out = append(out, simulation{context: maps.Clone(base), wanted: map[[2]string]bool{}})
			at = len(out) - 1
		}
		q := &out[at]
		maps.Copy(q.context, need.Context)
		for _, resource := range need.Resources {
			for _, action := range need.Actions {
				q.wanted[[2]string{action, resource}] = true
				q.actions, q.resources = appendMissing(q.actions, action), appendMissing(q.resources, resource)
			}
		}
	}
	return out
}

// appendMissing appends a text unless the list has it.
func appendMissing(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// isCompatible reports whether no condition key has another value here.
func (q simulation) isCompatible(context map[string][]string) bool {
	for key, values := range context {
		if has, ok := q.context[key]; ok && !slices.Equal(has, values) {
			return false
		}
	}
	return true
}

// resultsMax is the largest page of results.
const resultsMax = 1000

// simulateAll returns the denied actions of a role. IAM rejects some combinations of actions
// in one call, because they "require different authorization information". The combinations
// are not documented, so a rejected call is split in halves, down to a single action.
func (q simulation) simulateAll(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, arn string) ([]doctor.DeniedAction, error) {
	out, err := q.callSimulator(ctx, client, arn)
	if awsfault.ErrorCode(err) != "InvalidInput" || len(q.actions) < 2 {
		return out, err
	}
	halves := []simulation{q.restrictTo(q.actions[:len(q.actions)/2]), q.restrictTo(q.actions[len(q.actions)/2:])}
	refused, errs := make([][]doctor.DeniedAction, len(halves)), make([]error, len(halves))
	var running sync.WaitGroup
	for i, half := range halves {
		running.Go(func() { refused[i], errs[i] = half.simulateAll(ctx, client, arn) })
	}
	running.Wait()
	return slices.Concat(refused...), cmp.Or(errs...)
}

// restrictTo returns the simulation of some of the actions, on their resources.
func (q simulation) restrictTo(actions []string) simulation {
	out := simulation{actions: actions, context: q.context, wanted: map[[2]string]bool{}}
	for _, resource := range q.resources {
		for _, action := range actions {
			if pair := [2]string{action, resource}; q.wanted[pair] {
				out.wanted[pair], out.resources = true, appendMissing(out.resources, resource)
			}
		}
	}
	return out
}

// callSimulator makes one call and reads all pages of its result.
func (q simulation) callSimulator(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, arn string) ([]doctor.DeniedAction, error) {
	in := &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &arn, ActionNames: q.actions, ResourceArns: q.resources, MaxItems: aws.Int32(resultsMax)}
	for _, key := range slices.Sorted(maps.Keys(q.context)) {
		in.ContextEntries = append(in.ContextEntries, types.ContextEntry{ContextKeyName: aws.String(key), ContextKeyType: contextKeyType(q.context[key]), ContextKeyValues: q.context[key]})
	}
	var out []doctor.DeniedAction
	record := func(action, resource string, decision types.PolicyEvaluationDecisionType) {
		if q.wanted[[2]string{action, resource}] && decision != types.PolicyEvaluationDecisionTypeAllowed {
			out = append(out, doctor.DeniedAction{Action: action, Resource: resource, IsExplicit: decision == types.PolicyEvaluationDecisionTypeExplicitDeny})
		}
	}
	for pages := iam.NewSimulatePrincipalPolicyPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range page.EvaluationResults {
			r := &page.EvaluationResults[i]
			if len(r.ResourceSpecificResults) == 0 {
				record(aws.ToString(r.EvalActionName), aws.ToString(r.EvalResourceName), r.EvalDecision)
			}
			for j := range r.ResourceSpecificResults {
				one := &r.ResourceSpecificResults[j]
				record(aws.ToString(r.EvalActionName), aws.ToString(one.EvalResourceName), one.EvalResourceDecision)
			}
		}
	}
	return out, nil
}

// contextKeyType returns IAM's type of a condition key.
func contextKeyType(values []string) types.ContextKeyTypeEnum {
	switch {
	case len(values) > 1:
		return types.ContextKeyTypeEnumStringList
	case values[0] == "true":
		return types.ContextKeyTypeEnumBoolean
	}
	return types.ContextKeyTypeEnumString
}
