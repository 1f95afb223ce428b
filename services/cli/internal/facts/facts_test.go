package facts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

func card(t *testing.T) doctor.Card {
	t.Helper()
	plan, err := topology.Of(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Card{Plan: plan, Place: doctor.Place{Partition: "aws", Account: "1", Region: "eu-west-1"}, Bucket: "b", Prefix: "prod", NodeRole: "arn:aws:iam::1:role/nodes", Profiles: true}
}

// TestQuestionsAreFew: needs share a call unless they contradict each other about the
// request, and every need is asked in a call with its own context.
func TestQuestionsAreFew(t *testing.T) {
	c := card(t)
	for service, calls := range map[string]int{"planner": 1, "catalog": 1, "watcher": 1, "lifecycle": 1, "scheduler": 1, "launcher": 3} {
		got := groupNeeds(c.Needs(service), c.Base(service))
		if len(got) != calls {
			t.Errorf("%s: %d calls", service, len(got))
		}
		for _, need := range c.Needs(service) {
			for _, resource := range need.Resources {
				for _, action := range need.Actions {
					if !slices.ContainsFunc(got, func(q question) bool { return q.wanted[[2]string{action, resource}] && q.takes(need.Context) }) {
						t.Errorf("%s: nobody asks for %s on %s with %v", service, action, resource, need.Context)
					}
				}
			}
		}
	}
}

// TestContradictionsAreApart: a name that is given later has other tag keys than a
// launch.
func TestContradictionsAreApart(t *testing.T) {
	got := map[string]string{}
	for _, q := range groupNeeds(card(t).Needs("launcher"), card(t).Base("launcher")) {
		for _, action := range []string{"ec2:RunInstances", "ec2:CreateTags", "iam:TagInstanceProfile"} {
			if slices.Contains(q.actions, action) {
				got[action] += strings.Join(q.context["aws:TagKeys"], " ") + "; "
			}
		}
	}
	const born = "eks:eks-cluster-name karpenter.sh/nodepool kubernetes.io/cluster/prod; "
	want := map[string]string{
		"ec2:RunInstances": born, "ec2:CreateTags": born + "Name; ",
		"iam:TagInstanceProfile": "eks:eks-cluster-name karpenter.k8s.aws/ec2nodeclass kubernetes.io/cluster/prod topology.kubernetes.io/region; ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestKind(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   types.ContextKeyTypeEnum
	}{
		{[]string{"x"}, types.ContextKeyTypeEnumString}, {[]string{"true"}, types.ContextKeyTypeEnumBoolean}, {[]string{"true", "x"}, types.ContextKeyTypeEnumStringList},
	} {
		if got := contextKeyType(test.values); got != test.want {
			t.Errorf("%v is %s", test.values, got)
		}
	}
}

// TestRead reads a queue's attributes, as far as they can be read.
func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, redrive string
		dead          string
		receives      int
	}{
		{"numbers", `{"deadLetterTargetArn":"d","maxReceiveCount":100}`, "d", 100},
		{"texts", `{"deadLetterTargetArn":"d","maxReceiveCount":"100"}`, "d", 100},
		{"none", "", "", 0}, {"broken", "{", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := readAttributes(queues.Place{Name: "q", Attributes: map[string]string{
				"QueueArn": "arn", "VisibilityTimeout": "90", "MessageRetentionPeriod": "86400", "RedrivePolicy": test.redrive, "ApproximateNumberOfMessages": "2",
			}})
			if q.DeadARN != test.dead || q.MaxReceives != test.receives || q.Visibility != 90*time.Second || q.Retention != 24*time.Hour || q.Messages != 2 || q.ARN != "arn" {
				t.Errorf("%+v", q)
			}
		})
	}
}

// TestDocument: IAM encodes policies as parts of URLs; one that is not is as it is.
func TestDocument(t *testing.T) {
	for in, want := range map[string]string{"%7B%22a%22%3A1%7D": `{"a":1}`, `{"a":1}`: `{"a":1}`, "%": "%"} {
		if got := decodePolicy(aws.String(in)); got != want {
			t.Errorf("%s is %s", in, got)
		}
	}
}

// TestMiss: what could not be looked at says why, and which right to grant.
func TestMiss(t *testing.T) {
	for _, test := range []struct {
		name     string
		err      error
		action   string
		why, fix string
	}{
		{"denied", fault.F("asking", fault.Denied, "no"), "iam:GetRole", "denied iam:GetRole", "grant iam:GetRole to the identity"},
		{"denied, and nobody knows the right", fault.F("asking", fault.Denied, "no").WithHint("ask"), "", "asking: no", "ask"},
		{"late", context.DeadlineExceeded, "iam:GetRole", "all checks together have 5s", "run joist doctor again"},
		{"otherwise", errors.New("a\nb"), "iam:GetRole", "a b", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &collector{}
			g.recordSkipped("it", test.err, test.action)
			if u := g.unseen[0]; !strings.Contains(u.Why, test.why) || !strings.Contains(u.Fix, test.fix) || u.What != "it" {
				t.Errorf("%+v", u)
			}
		})
	}
}

// TestEntryOf: a function is told of a cluster by the cluster's name with its queue, or it
// hands the messages to another's worker.
func TestEntryOf(t *testing.T) {
	const list = `[{"JOIST_CLUSTER_NAME":"staging","JOIST_QUEUE_URL":"https://sqs/1/staging-q","JOIST_ROLE_ARN":"s"},{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"https://sqs/1/prod-q","JOIST_ROLE_ARN":"p"}]`
	for _, test := range []struct {
		list, cluster, queue string
		want                 string
	}{
		{list, "prod", "prod-q", "p"}, {list, "staging", "staging-q", "s"},
		{list, "prod", "staging-q", ""}, {list, "test", "test-q", ""}, {"{", "prod", "prod-q", ""},
	} {
		if got := entryOf(test.list, test.cluster, test.queue); got["JOIST_ROLE_ARN"] != test.want || (got == nil) != (test.want == "") {
			t.Errorf("%s with %s in %s: %v", test.cluster, test.queue, test.list, got)
		}
	}
}

func TestNameOf(t *testing.T) {
	const arn = "arn:aws:lambda:eu-west-1:1:function:f"
	for in, want := range map[string]string{arn: "f", arn + ":live": "f", "f": "f"} {
		if got := nameOf(in); got != want {
			t.Errorf("%s is called %s", in, got)
		}
	}
}
