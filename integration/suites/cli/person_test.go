package cli

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/rights"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// The access keys of people: an operator, and an operator who may also replay.
const (
	operator = "AKIDOPERATOR"
	replayer = "AKIDREPLAYER"
)

const (
	operatorRole = "arn:aws:iam::123456789012:role/looker"
	onCallRole   = "arn:aws:iam::123456789012:role/on-call"
)

// scopeOf returns the scope of the CDK app's policies, in which the queues permit the
// replayer.
func scopeOf(plan topology.Plan) rights.Scope {
	return rights.Scope{
		Partition: "aws", Account: "123456789012", Region: "eu-west-1", Plan: plan, Bucket: "b", Prefix: "prod", NodeRole: nodeRole, Profiles: true, NodeTags: []string{"*"},
		Replayers: []string{onCallRole},
	}
}

// newAuthorizer returns an authorizer that evaluates people's requests with the app's policies and
// the queues' policies.
func newAuthorizer(t *testing.T, plan topology.Plan) *authorization.Authorizer {
	t.Helper()
	scope := scopeOf(plan)
	g := &authorization.Authorizer{
		Place: authorization.Place{Partition: "aws", Account: scope.Account, Region: scope.Region}, Cloud: memcloud.New(memcloud.Options{Now: time.Now, Seed: 1}),
		Resources: map[string][]evaluator.Policy{},
	}
	addPersonPolicies(t, g, scope)
	for _, q := range plan.Queues {
		g.Resources["arn:aws:sqs:eu-west-1:123456789012:"+q.Name] = []evaluator.Policy{parsed(t, q.Name, scope.QueuePolicy(q), nil)}
		g.Resources["arn:aws:sqs:eu-west-1:123456789012:"+q.Dead] = []evaluator.Policy{parsed(t, q.Dead, scope.DeadLetterPolicy(q), nil)}
	}
	g.Resources["arn:aws:sqs:eu-west-1:123456789012:"+plan.AuditDead] = []evaluator.Policy{parsed(t, plan.AuditDead, scope.RuleDeadLetterPolicy(plan.AuditDead), nil)}
	return g
}

// addPersonPolicies gives people the policies of the app.
func addPersonPolicies(t *testing.T, g *authorization.Authorizer, scope rights.Scope) {
	t.Helper()
	look, lookErr := scope.OperatorPolicy()
	put, putErr := scope.ReplayerPolicy()
	g.AddCaller(operator, authorization.Role{ARN: operatorRole, Policies: []evaluator.Policy{parsed(t, "operator", look, lookErr)}})
	g.AddCaller(replayer, authorization.Role{ARN: onCallRole, Policies: []evaluator.Policy{parsed(t, "operator", look, lookErr), parsed(t, "replayer", put, putErr)}})
}

func parsed(t *testing.T, name string, d rights.Document, err error) evaluator.Policy {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := evaluator.Parse(name, d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestCommandsUseAllPermissions runs every command and checks that each permission is
// used. All tests of this package run with exactly the permissions of people.
func TestCommandsUseAllPermissions(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.kube["/api/v1/namespaces/joist/serviceaccounts/joist-lifecycle"] = `{"metadata":{}}`
	c.fillDeadLetterQueues(t)
	c.doctor(t)
	c.migrate(t)
	for _, args := range [][]string{{"queues"}, {"dead", "list"}, {"replay", "--queue", "launcher", "--match", "kind=bug", "--yes", "--rate", "500"}} {
		if stdout, stderr, code := c.joist(t, args...); code == cli.ExitError {
			t.Errorf("%v: %s%s", args, stdout, stderr)
		}
	}
	asked := 0
	w := start(t, newEmptyLogs(&asked))
	if stdout, stderr, code := w.joist(t, "trace", "0af7651916cd43dd8448eb211c80319c"); code != cli.ExitError || asked == 0 || !strings.Contains(stderr, "none of 0 entries") {
		t.Errorf("exit code %d after %d searches: %s%s", code, asked, stdout, stderr)
	}
	w.unlogged(t, 30)
	w.interrupted(t, ": running", "replay", "--queue", "audit", "--yes")
	w.clock.tick()
	w.many(t, 30)
	w.interrupted(t, "replayed ", "replay", "--queue", "launcher", "--yes", "--rate", "5")
	used := map[string]bool{}
	for _, g := range []*authorization.Authorizer{c.authorizer, w.authorizer} {
		for _, actions := range g.Used() {
			for action := range actions {
				used[action] = true
			}
		}
	}
	given := map[string]bool{}
	for _, write := range []func() (rights.Document, error){scopeOf(w.plan).OperatorPolicy, scopeOf(w.plan).ReplayerPolicy} {
		d, err := write()
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range d.Actions() {
			given[action] = true
		}
	}
	// The bucket is an in-memory model that checks no permissions.
	delete(given, "s3:GetObject")
	delete(given, "s3:ListBucket")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(given)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("rights and their use (-given +used):\n%s", diff)
	}
}

// newEmptyLogs returns a CloudWatch Logs without entries, which counts the searches.
func newEmptyLogs(asked *int) *awsjson.API {
	return &awsjson.API{Target: "Logs_20140328", Version: "1.1", Operations: map[string]awsjson.Operation{
		"FilterLogEvents": awsjson.Op(func(*http.Request, struct{}) (any, error) {
			*asked++
			return map[string]any{"events": []any{}}, nil
		}),
	}}
}

// TestOperatorsCannotReplay checks that an operator without the replayer's policy
// cannot replay by any method, and that the error names the missing permission.
func TestOperatorsCannotReplay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fill  func(t *testing.T, w *world)
		queue string
		lacks string
	}{
		{"one by one", func(t *testing.T, w *world) { t.Helper(); w.fillDeadLetterQueues(t) }, "launcher", "sqs:SendMessage"},
		{"by SQS", func(t *testing.T, w *world) { t.Helper(); w.many(t, 3) }, "launcher", "sqs:ListMessageMoveTasks"},
		{"by the archive", func(t *testing.T, w *world) { t.Helper(); w.unlogged(t, 30) }, "audit", "events:StartReplay"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t)
			w.denies, w.who = true, operator
			test.fill(t, w)
			_, stderr, code := w.joist(t, "replay", "--queue", test.queue, "--yes")
			if code != cli.ExitError || !strings.Contains(stderr, test.lacks) || len(w.authorizer.Denied()) == 0 {
				t.Errorf("code %d, denied %q: %s", code, w.authorizer.Denied(), stderr)
			}
		})
	}
}

// interrupted runs a command, and interrupts it when stderr contains the text.
func (w *world) interrupted(t *testing.T, at string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs bytes.Buffer
	env := w.env(&out, &errs, args...)
	recorded := &watched{want: at, seen: make(chan struct{})}
	env.Stderr = recorded
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-recorded.seen:
			stop()
		case <-done:
		}
	}()
	code = cli.Run(ctx, env)
	return out.String(), recorded.text.String(), code
}
