package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

func testPermissions(t *testing.T) doctor.PermissionSet {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return doctor.PermissionSet{Plan: plan, Location: doctor.Location{Partition: "aws", Account: "1", Region: "eu-west-1"}, Bucket: "b", Prefix: "prod", NodeRole: "arn:aws:iam::1:role/nodes", Profiles: true}
}

// TestGroupPermissions: permissions share a call unless their condition keys conflict, and
// each is simulated with its own keys.
func TestGroupPermissions(t *testing.T) {
	c := testPermissions(t)
	for service, calls := range map[string]int{"planner": 1, "catalog": 1, "watcher": 1, "lifecycle": 1, "scheduler": 1, "launcher": 3} {
		got := groupPermissions(c.ServicePermissions(service), c.BaseContext(service))
		if len(got) != calls {
			t.Errorf("%s: %d calls", service, len(got))
		}
		for _, need := range c.ServicePermissions(service) {
			for _, resource := range need.Resources {
				for _, action := range need.Actions {
					if !slices.ContainsFunc(got, func(q simulation) bool { return q.wanted[[2]string{action, resource}] && q.isCompatible(need.Context) }) {
						t.Errorf("%s: no call simulates %s on %s with %v", service, action, resource, need.Context)
					}
				}
			}
		}
	}
}

// TestGroupPermissionsSplitsConflicts: a later tag has other tag keys than a launch.
func TestGroupPermissionsSplitsConflicts(t *testing.T) {
	got := map[string]string{}
	for _, q := range groupPermissions(testPermissions(t).ServicePermissions("launcher"), testPermissions(t).BaseContext("launcher")) {
		for _, action := range []string{"ec2:RunInstances", "ec2:CreateTags", "iam:TagInstanceProfile"} {
			if slices.Contains(q.actions, action) {
				got[action] += strings.Join(q.context["aws:TagKeys"], " ") + "; "
			}
		}
	}
	const launched = "eks:eks-cluster-name karpenter.sh/nodepool kubernetes.io/cluster/prod; "
	want := map[string]string{
		"ec2:RunInstances": launched, "ec2:CreateTags": launched + "Name; ",
		"iam:TagInstanceProfile": "eks:eks-cluster-name karpenter.k8s.aws/ec2nodeclass kubernetes.io/cluster/prod topology.kubernetes.io/region; ",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestContextKeyType(t *testing.T) {
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

// TestReadAttributes ignores attributes that cannot be parsed.
func TestReadAttributes(t *testing.T) {
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
			q := readAttributes(queues.FoundQueue{Name: "q", Attributes: map[string]string{
				"QueueArn": "arn", "VisibilityTimeout": "90", "MessageRetentionPeriod": "86400", "RedrivePolicy": test.redrive, "ApproximateNumberOfMessages": "2",
			}})
			if q.DeadARN != test.dead || q.MaxReceives != test.receives || q.Visibility != 90*time.Second || q.Retention != 24*time.Hour || q.Messages != 2 || q.ARN != "arn" {
				t.Errorf("%+v", q)
			}
		})
	}
}

// TestDecodePolicy: IAM returns URL-encoded policies; a text that is not encoded stays
// unchanged.
func TestDecodePolicy(t *testing.T) {
	for in, want := range map[string]string{"%7B%22a%22%3A1%7D": `{"a":1}`, `{"a":1}`: `{"a":1}`, "%": "%"} {
		if got := decodePolicy(aws.String(in)); got != want {
			t.Errorf("%s is %s", in, got)
		}
	}
}

// TestRecordSkipped: a skipped check has the reason and the permission to grant.
func TestRecordSkipped(t *testing.T) {
	for _, test := range []struct {
		name     string
		err      error
		action   string
		why, fix string
	}{
		{"denied", fault.F("asking", fault.Denied, "no"), "iam:GetRole", "denied iam:GetRole", "grant iam:GetRole to the identity"},
		{"denied without a known permission", fault.F("asking", fault.Denied, "no").WithHint("ask"), "", "asking: no", "ask"},
		{"late", context.DeadlineExceeded, "iam:GetRole", "all checks together have 5s", "run joist doctor again"},
		{"otherwise", errors.New("a\nb"), "iam:GetRole", "a b", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &collector{}
			g.recordSkipped("it", test.err, test.action)
			if u := g.skipped[0]; !strings.Contains(u.Reason, test.why) || !strings.Contains(u.Fix, test.fix) || u.Subject != "it" {
				t.Errorf("%+v", u)
			}
		})
	}
}

// TestFindEntry: an entry must have the cluster's name and its queue.
func TestFindEntry(t *testing.T) {
	const list = `[{"JOIST_CLUSTER_NAME":"staging","JOIST_QUEUE_URL":"https://sqs/1/staging-q","JOIST_ROLE_ARN":"s"},{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"https://sqs/1/prod-q","JOIST_ROLE_ARN":"p"}]`
	for _, test := range []struct {
		list, cluster, queue string
		want                 string
	}{
		{list, "prod", "prod-q", "p"}, {list, "staging", "staging-q", "s"},
		{list, "prod", "staging-q", ""}, {list, "test", "test-q", ""}, {"{", "prod", "prod-q", ""},
	} {
		if got := findEntry(test.list, test.cluster, test.queue); got["JOIST_ROLE_ARN"] != test.want || (got == nil) != (test.want == "") {
			t.Errorf("%s with %s in %s: %v", test.cluster, test.queue, test.list, got)
		}
	}
}

func TestFunctionName(t *testing.T) {
	const arn = "arn:aws:lambda:eu-west-1:1:function:f"
	for in, want := range map[string]string{arn: "f", arn + ":live": "f", "f": "f"} {
		if got := functionName(in); got != want {
			t.Errorf("%s has the name %s", in, got)
		}
	}
}

// TestControllers: Karpenter is recognized by its label or by an image of any registry, and Joist's
// Deployments by their component, with any name.
func TestControllers(t *testing.T) {
	for name, test := range map[string]struct {
		labels, image string
		karpenter     []bool // one for each Deployment in the facts
	}{
		"Karpenter's image":                 {`"app.kubernetes.io/name":"karpenter"`, "public.ecr.aws/karpenter/controller:1.15.1", []bool{true}},
		"a mirror":                          {`"app.kubernetes.io/name":"karpenter"`, "1.dkr.ecr.eu-west-1.amazonaws.com/platform/karpenter-controller:1.15.1", []bool{true}},
		"a mirror with any name":            {`"app.kubernetes.io/name":"karpenter"`, "registry.example.com/autoscaling/controller:1.15.1", []bool{true}},
		"another name of the chart":         {`"app.kubernetes.io/name":"scaler","app.kubernetes.io/instance":"karpenter"`, "registry.example.com/karpenter:1.15.1", []bool{true}},
		"Joist with the name karpenter":     {`"app.kubernetes.io/name":"karpenter","app.kubernetes.io/component":"watcher"`, "ghcr.io/joist-autoscaler/joist-watcher:v1", []bool{false}},
		"Joist's image in a folder":         {`"app.kubernetes.io/component":"lifecycle"`, "registry.example.com/karpenter/joist-lifecycle:v1", []bool{false}},
		"another program of the release":    {`"app.kubernetes.io/name":"exporter","app.kubernetes.io/instance":"karpenter"`, "registry.example.com/exporter:v1", nil},
		"a Deployment without these labels": {`"app.kubernetes.io/name":"web"`, "registry.example.com/web:v1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := &collector{Sources: Sources{Kube: func(_ context.Context, path string) ([]byte, error) {
				_, query, _ := strings.Cut(path, "?")
				selected, err := url.ParseQuery(query)
				if err != nil {
					return nil, err
				}
				wanted, err := labels.Parse(selected.Get("labelSelector"))
				if err != nil {
					return nil, err
				}
				var d appsv1.Deployment
				text := fmt.Sprintf(`{"metadata":{"name":"x","labels":{%s}},"spec":{"template":{"spec":{"containers":[{"image":%q}]}}}}`, test.labels, test.image)
				if err := json.Unmarshal([]byte(text), &d); err != nil || !wanted.Matches(labels.Set(d.Labels)) {
					return []byte(`{}`), err
				}
				return []byte(`{"items":[` + text + `]}`), nil
			}}}
			if err := g.readDeployments(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []bool
			for _, d := range g.facts.Deployments {
				got = append(got, d.Karpenter)
			}
			if !slices.Equal(got, test.karpenter) {
				t.Errorf("%+v", g.facts.Deployments)
			}
		})
	}
}

// TestDiscoveryUse: the discovery tag is needed if all terms of a class select by it.
func TestDiscoveryUse(t *testing.T) {
	const tag, other = `{"tags":{"karpenter.sh/discovery":"prod"}}`, `{"tags":{"karpenter.sh/discovery":"staging"}}`
	class := func(subnets, groups string) string {
		return `{"spec":{"subnetSelectorTerms":[` + subnets + `],"securityGroupSelectorTerms":[` + groups + `]}}`
	}
	for name, test := range map[string]struct {
		classes string
		want    *doctor.DiscoveryUse
	}{
		"no class":                     {"", nil},
		"both by the tag":              {class(tag, tag), &doctor.DiscoveryUse{Subnets: true, SecurityGroups: true}},
		"by ID and by name":            {class(`{"id":"subnet-1"}`, `{"name":"nodes"}`), &doctor.DiscoveryUse{}},
		"by another value":             {class(other, other), &doctor.DiscoveryUse{}},
		"also by ID":                   {class(tag+`,{"id":"subnet-1"}`, tag), &doctor.DiscoveryUse{SecurityGroups: true}},
		"one of two classes":           {class(`{"id":"subnet-1"}`, `{"id":"sg-1"}`) + "," + class(tag, `{"id":"sg-1"}`), &doctor.DiscoveryUse{Subnets: true}},
		"any value of the tag":         {class(`{"tags":{"karpenter.sh/discovery":"*"}}`, tag), &doctor.DiscoveryUse{Subnets: true, SecurityGroups: true}},
		"a class without any selector": {class("", ""), &doctor.DiscoveryUse{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &collector{Sources: Sources{Plan: testPermissions(t).Plan, Kube: func(context.Context, string) ([]byte, error) {
				return []byte(`{"items":[` + test.classes + `]}`), nil
			}}}
			if err := g.readNodeClasses(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, g.facts.Discovery); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFlagsOfKarpenter: flags of Karpenter count as the variables that they replace.
func TestFlagsOfKarpenter(t *testing.T) {
	for name, test := range map[string]struct {
		environ       []corev1.EnvVar
		command, args []string
		want          map[string]string
	}{
		"a variable":             {environ: []corev1.EnvVar{{Name: "DISABLE_LEADER_ELECTION", Value: "true"}}, want: map[string]string{"DISABLE_LEADER_ELECTION": "true"}},
		"a flag without a value": {args: []string{"--disable-leader-election", "--cluster-name", "prod"}, want: map[string]string{"DISABLE_LEADER_ELECTION": "true", "CLUSTER_NAME": "prod"}},
		"a flag wins": {
			environ: []corev1.EnvVar{{Name: "DISABLE_LEADER_ELECTION", Value: "true"}}, args: []string{"-disable-leader-election=false"}, want: map[string]string{"DISABLE_LEADER_ELECTION": "false"},
		},
		"a shell":              {command: []string{"/bin/sh", "-c", "exec /controller --disable-leader-election=true"}, want: map[string]string{"C": "exec", "DISABLE_LEADER_ELECTION": "true"}},
		"a reference":          {environ: []corev1.EnvVar{{Name: "NAME", Value: "prod"}}, args: []string{"--cluster-name=$(NAME)"}, want: map[string]string{"NAME": "prod", "CLUSTER_NAME": "prod"}},
		"neither flag nor env": {command: []string{"/controller"}, want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var d appsv1.Deployment
			d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "public.ecr.aws/karpenter/controller:1.15.1", Env: test.environ, Command: test.command, Args: test.args}}
			got := (&collector{}).convertDeployment(t.Context(), &d)
			if !maps.Equal(got.Environ, test.want) || got.SkipsElection() != (test.want["DISABLE_LEADER_ELECTION"] == "true") {
				t.Errorf("%+v, want %v", got, test.want)
			}
		})
	}
}
