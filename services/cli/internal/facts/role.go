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

// inquiry is what is asked about one role.
type inquiry struct {
	service, arn string
	// sure says that the service has this role; else its name is a guess.
	sure  bool
	needs []doctor.Need
}

// simulateRoles asks IAM whether each role may do what its service's card says.
func (g *collector) simulateRoles(ctx context.Context, sofar doctor.Facts) {
	card := doctor.Card{
		Plan: g.Plan, Place: sofar.Place, Bucket: g.bucket(sofar), Prefix: g.Prefix,
		NodeRole: sofar.Place.Role(g.NodeRole), Profiles: sofar.ByRole, Functions: sofar.Functions,
		NoEKS: sofar.SelfManaged != nil,
	}
	client := iam.NewFromConfig(g.config)
	g.all.Go(func() { g.simulateRole(ctx, client, listInquiries(sofar, card), card) })
}

// simulateRole makes all inquiries at the same time. A role of which IAM would not judge all keeps
// what it was judged for, and takes nothing from the others.
func (g *collector) simulateRole(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, all []inquiry, card doctor.Card) {
	roles, errs := make([]*doctor.Role, len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	for i, one := range all {
		asking.Go(func() { roles[i], errs[i] = one.simulatePolicy(ctx, client, card.Base(one.service)) })
	}
	asking.Wait()
	told := false
	for i, err := range errs {
		if r := roles[i]; r != nil {
			g.setFact(func(f *doctor.Facts) { f.Roles = append(f.Roles, *r) })
		}
		if err == nil {
			continue
		}
		const action = "iam:SimulatePrincipalPolicy"
		what := "the permissions of the role " + path.Base(all[i].arn)
		err = awsfault.Read("reading "+what, action).Fault(err)
		// Whoever may not ask about one role may ask about none, and a time that is over is
		// over for all: one note is enough.
		if fault.Is(err, fault.Denied) || errors.Is(err, context.DeadlineExceeded) {
			if told {
				continue
			}
			told, what = true, "the permissions of the roles"
		}
		g.recordSkipped(what, err, action)
	}
}

// listInquiries are about each service's role, and about those of functions that take it.
func listInquiries(f doctor.Facts, card doctor.Card) []inquiry {
	services := slices.Concat(topology.Outside, topology.Inside, []string{topology.Scheduler})
	names, sure := f.Names(services)
	var all []inquiry
	for _, service := range services {
		all = append(all, inquiry{service, names[service], sure[service], card.Needs(service)})
		if needs := card.Taking(service); len(needs) > 0 {
			all = append(all, inquiry{service, f.Functions[service].Role, true, needs})
		}
	}
	return all
}

// simulatePolicy asks about the role. One that does not exist is nothing to tell of where its name
// is a guess: the service may have another. What is refused counts even if not all was
// judged.
func (i inquiry) simulatePolicy(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, base map[string][]string) (*doctor.Role, error) {
	out := &doctor.Role{Service: i.service, Name: path.Base(i.arn)}
	var first error
	for _, ask := range groupNeeds(i.needs, base) {
		refused, err := ask.simulateAll(ctx, client, i.arn)
		if isMissing(err) {
			if out.Missing = true; !i.sure {
				return nil, nil
			}
			return out, nil
		}
		first = cmp.Or(first, err)
		out.Refused = append(out.Refused, refused...)
	}
	slices.SortFunc(out.Refused, func(a, b doctor.Refusal) int { return strings.Compare(a.Action+a.Resource, b.Action+b.Resource) })
	return out, first
}

// question is one call: IAM judges every action on every resource, and only the wanted
// pairs are read.
type question struct {
	actions, resources []string
	context            map[string][]string
	wanted             map[[2]string]bool
}

// groupNeeds are as few calls as can be: needs share one unless they contradict each other
// about what is known of a request.
func groupNeeds(needs []doctor.Need, base map[string][]string) []question {
	var out []question
	for _, need := range needs {
		at := slices.IndexFunc(out, func(q question) bool { return q.takes(need.Context) })
		if at < 0 {
			out = append(out, question{context: maps.Clone(base), wanted: map[[2]string]bool{}})
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

// appendMissing appends what is not there.
func appendMissing(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// takes reports whether nothing of a context is otherwise here.
func (q question) takes(context map[string][]string) bool {
	for key, values := range context {
		if has, ok := q.context[key]; ok && !slices.Equal(has, values) {
			return false
		}
	}
	return true
}

// answersMax is how many answers IAM gives in one page at most.
const answersMax = 1000

// simulateAll asks about a role, and gives what it is refused. IAM refuses to judge some actions in
// one call with others, for they "require different authorization information"; which those
// are is not documented. So what it refuses is halved, down to one action in a call.
func (q question) simulateAll(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, arn string) ([]doctor.Refusal, error) {
	out, err := q.callSimulator(ctx, client, arn)
	if awsfault.Code(err) != "InvalidInput" || len(q.actions) < 2 {
		return out, err
	}
	halves := []question{q.restrictTo(q.actions[:len(q.actions)/2]), q.restrictTo(q.actions[len(q.actions)/2:])}
	refused, errs := make([][]doctor.Refusal, len(halves)), make([]error, len(halves))
	var asking sync.WaitGroup
	for i, half := range halves {
		asking.Go(func() { refused[i], errs[i] = half.simulateAll(ctx, client, arn) })
	}
	asking.Wait()
	return slices.Concat(refused...), cmp.Or(errs...)
}

// restrictTo is the question about some of the actions, on those resources that they are for.
func (q question) restrictTo(actions []string) question {
	out := question{actions: actions, context: q.context, wanted: map[[2]string]bool{}}
	for _, resource := range q.resources {
		for _, action := range actions {
			if pair := [2]string{action, resource}; q.wanted[pair] {
				out.wanted[pair], out.resources = true, appendMissing(out.resources, resource)
			}
		}
	}
	return out
}

// callSimulator makes one call, and turns the pages of its answer.
func (q question) callSimulator(ctx context.Context, client iam.SimulatePrincipalPolicyAPIClient, arn string) ([]doctor.Refusal, error) {
	in := &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &arn, ActionNames: q.actions, ResourceArns: q.resources, MaxItems: aws.Int32(answersMax)}
	for _, key := range slices.Sorted(maps.Keys(q.context)) {
		in.ContextEntries = append(in.ContextEntries, types.ContextEntry{ContextKeyName: aws.String(key), ContextKeyType: contextKeyType(q.context[key]), ContextKeyValues: q.context[key]})
	}
	var out []doctor.Refusal
	tell := func(action, resource string, decision types.PolicyEvaluationDecisionType) {
		if q.wanted[[2]string{action, resource}] && decision != types.PolicyEvaluationDecisionTypeAllowed {
			out = append(out, doctor.Refusal{Action: action, Resource: resource, Explicit: decision == types.PolicyEvaluationDecisionTypeExplicitDeny})
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
				tell(aws.ToString(r.EvalActionName), aws.ToString(r.EvalResourceName), r.EvalDecision)
			}
			for j := range r.ResourceSpecificResults {
				one := &r.ResourceSpecificResults[j]
				tell(aws.ToString(r.EvalActionName), aws.ToString(one.EvalResourceName), one.EvalResourceDecision)
			}
		}
	}
	return out, nil
}

// contextKeyType is how IAM is told what a key of conditions holds.
func contextKeyType(values []string) types.ContextKeyTypeEnum {
	switch {
	case len(values) > 1:
		return types.ContextKeyTypeEnumStringList
	case values[0] == "true":
		return types.ContextKeyTypeEnumBoolean
	}
	return types.ContextKeyTypeEnumString
}
