package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/account"
	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// TestDoctorFindsNothing checks that doctor reports no problem in a healthy installation,
// within its time limit.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	c := open(t)
	begun := time.Now()
	_, text, code := c.doctor(t)
	if code != 0 || text != "No problems found in cluster prod.\n" {
		t.Errorf("code %d: %s", code, text)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestDoctorFinds breaks one thing in the account, in the cluster or on the machine, and
// checks that doctor reports it.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, c *doctorAccount)
		check string
	}{
		{"queue policy missing", func(t *testing.T, c *doctorAccount) { c.policy(t, "prod", "") }, "queue-policy-missing"},
		{"a rule has another pattern", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			bus, _ := c.broker.FindBus("default")
			q, _ := c.plan.Queue("interruption")
			if err := bus.PutRule(memqueue.Rule{Name: "prod-joist-spot", Pattern: `{"source":["none"]}`, Targets: []memqueue.Target{{Queue: q.Name, DeadLetter: q.Dead}}}); err != nil {
				t.Fatal(err)
			}
		}, "rule-missing"},
		{"redrive policy missing", func(_ *testing.T, c *doctorAccount) {
			q, _ := c.plan.Queue("planner")
			c.broker.Queue(q.Name, memqueue.QueueOptions{Visibility: q.Visibility, Retention: q.Retention})
		}, "redrive-missing"},
		{"visibility", func(_ *testing.T, c *doctorAccount) {
			c.reconfigure("prod-joist-planner", func(f *account.Function) { f.TimeoutSeconds++ })
		}, "visibility-short"},
		{"mapping", func(_ *testing.T, c *doctorAccount) {
			clear(c.account.Functions["prod-joist-planner"].Mappings)
		}, "event-source-mapping-missing"},
		{"function of a mapping missing", func(_ *testing.T, c *doctorAccount) {
			c.reconfigure("prod-joist-planner", func(f *account.Function) { f.Gone = true })
		}, "function-missing"},
		{"spot service-linked role missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, "AWSServiceRoleForEC2Spot") }, "spot-role-missing"},
		{"node role missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, "KarpenterNodeRole-prod") }, "node-role-missing"},
		{"access", func(_ *testing.T, c *doctorAccount) { clear(c.account.Entries) }, "node-access"},
		{"aws-auth", func(_ *testing.T, c *doctorAccount) { c.account.Mode = "CONFIG_MAP" }, "node-access"},
		{"tags", func(_ *testing.T, c *doctorAccount) {
			c.cloud.AddSecurityGroup(cloud.SecurityGroup{ID: "sg-2", Name: "others", Tags: map[string]string{"karpenter.sh/discovery": "prod"}})
		}, "discovery-tag-ambiguous"},
		{"trust", func(_ *testing.T, c *doctorAccount) {
			r := c.account.Roles["prod-joist-watcher"]
			r.Trust = strings.ReplaceAll(r.Trust, "joist:joist-watcher", "kube-system:karpenter")
			c.account.Roles["prod-joist-watcher"] = r
		}, "trust-subject"},
		{"trust in another cluster's provider", func(_ *testing.T, c *doctorAccount) { c.account.Issuer += "DEF" }, "trust-issuer"},
		{"no ServiceAccount", func(_ *testing.T, c *doctorAccount) {
			delete(c.kube, "/api/v1/namespaces/joist/serviceaccounts/joist-lifecycle")
		}, "service-account-missing"},
		{"no Pod Identity", func(_ *testing.T, c *doctorAccount) { clear(c.account.Pods) }, "pod-identity-missing"},
		{"another's Pod Identity", func(_ *testing.T, c *doctorAccount) { c.account.Pods["joist/joist-lifecycle"] = podRole }, "pod-identity-role"},
		{"Pod Identity is not trusted", func(_ *testing.T, c *doctorAccount) {
			r := c.account.Roles["prod-joist-lifecycle"]
			r.Trust = strings.Replace(r.Trust, `,"sts:TagSession"`, "", 1)
			c.account.Roles["prod-joist-lifecycle"] = r
		}, "trust-pods"},
		{"permission missing", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.denyAction(t, "prod-joist-launcher", "ec2:CreateFleet", false)
		}, "role-permissions-missing"},
		{"permission denied in the simulation of one action", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.denyAction(t, "prod-joist-launcher", "iam:PassRole", false)
		}, "role-permissions-missing"},
		{"permission denied by a boundary", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.denyAction(t, "prod-joist-watcher", "sqs:SendMessage", true)
		}, "role-permissions-missing"},
		{"role of a function missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, "prod-joist-planner") }, "role-missing"},
		{"role of the scheduler missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, "prod-joist-scheduler") }, "role-missing"},
		{"role of a pod missing", func(_ *testing.T, c *doctorAccount) { delete(c.account.Roles, "prod-joist-watcher") }, "role-missing"},
		{"instance profile missing", func(_ *testing.T, c *doctorAccount) { clear(c.account.Profiles) }, "instance-profile-missing"},
		{"an empty instance profile", func(_ *testing.T, c *doctorAccount) { c.account.Profiles["KarpenterNodeInstanceProfile-prod"] = "" }, "instance-profile-role"},
		{"an instance profile with another role", func(_ *testing.T, c *doctorAccount) {
			c.account.Profiles["KarpenterNodeInstanceProfile-prod"] = "other"
		}, "instance-profile-role"},
		{"DLQ messages", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.moveToDLQ(t, "launcher", bug, tag(t, c.clock.Now(), instance(1)))
		}, "dlq-messages"},
		{"DLQ of the audit log missing", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			bus, _ := c.broker.FindBus(c.plan.Bus)
			for _, r := range bus.Rules() {
				if r.Name == "prod-joist-audit" {
					r.Targets[0].DeadLetter = ""
					if err := bus.PutRule(r); err != nil {
						t.Fatal(err)
					}
				}
			}
		}, "rule-dlq-missing"},
		{"Karpenter runs", func(_ *testing.T, c *doctorAccount) {
			c.kube[theirDeployments] = strings.Replace(list(deployment("karpenter", "public.ecr.aws/karpenter/controller:1.8.0", "karpenter", 2)), `"namespace":"joist"`, `"namespace":"kube-system"`, 1)
		}, "karpenter-running"},
		{"Karpenter holds its Lease", func(_ *testing.T, c *doctorAccount) {
			c.kube[leases] = `{"items":[{"metadata":{"namespace":"kube-system"},"spec":{"holderIdentity":"karpenter-7_x","renewTime":"` + time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") + `"}}]}`
		}, "karpenter-holds-lease"},
		{"replicas", func(_ *testing.T, c *doctorAccount) {
			c.kube[ourDeployments] = services("v1.0.0", 1)
		}, "replicas-one"},
		{"version", func(_ *testing.T, c *doctorAccount) {
			c.kube[ourDeployments] = services("${KARPENTER_VERSION}", 2)
		}, "variable-unset"},
		{"definitions", func(_ *testing.T, c *doctorAccount) { c.kube["/apis/karpenter.k8s.aws"] = `{"versions":[]}` }, "crd-missing"},
		{"an old snapshot", func(t *testing.T, c *doctorAccount) {
			t.Helper()
			c.write(t, planning.SnapshotKind, planning.Snapshot{TakenAt: c.clock.Now().Add(-3 * time.Hour), Cluster: "prod"})
		}, "snapshot-stale"},
		{"clock skew", func(_ *testing.T, c *doctorAccount) { c.clock.Advance(-10 * time.Minute) }, "clock-skew"},
		{"kubectl missing", func(_ *testing.T, c *doctorAccount) { delete(c.tools, "kubectl") }, "tool-missing"},
		{"an old helm", func(_ *testing.T, c *doctorAccount) { c.tools["helm"] = "v3.8.0" }, "tool-old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := open(t)
			test.spoil(t, c)
			out, text, code := c.doctor(t, "-o", "json")
			if code != 2 || len(out.Findings) != 1 || out.Findings[0].Check != test.check || len(out.Skipped) > 0 {
				t.Errorf("code %d, want %s: %s", code, test.check, text)
			}
		})
	}
}

// TestDoctorNamesMissingPermissions checks that doctor names each missing permission and
// still runs the other checks.
func TestDoctorNamesMissingPermissions(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.account.Denied = map[string]bool{"GetRole": true, "GetFunctionConfiguration": true}
	c.denied = "/apis/apps"
	c.policy(t, "prod", "")
	out, text, code := c.doctor(t, "-o", "json")
	if code != 2 || len(out.Findings) != 1 || out.Findings[0].Check != "queue-policy-missing" {
		t.Errorf("code %d: %s", code, text)
	}
	for _, right := range []string{"grant iam:GetRole", "grant lambda:GetFunctionConfiguration", "to list deployments.apps"} {
		if !strings.Contains(text, right) {
			t.Errorf("%s is not in %s", right, text)
		}
	}
	if len(out.Skipped) != 8 {
		t.Errorf("%d checks were skipped: %s", len(out.Skipped), text)
	}
}

// TestDoctorChecksNothing checks that doctor fails, with a one-line reason, if it could
// read nothing of AWS or of Kubernetes.
func TestDoctorChecksNothing(t *testing.T) {
	t.Parallel()
	const kubeless = "no kubeconfig"
	unopened := func(string, string) (func(context.Context, string) ([]byte, error), error) {
		return nil, fault.F("reading the kubeconfig", fault.Invalid, kubeless).WithHint("aws eks update-kubeconfig")
	}
	signedOut := func(context.Context) (aws.Config, error) {
		return aws.Config{}, fault.F("finding AWS credentials", fault.Invalid, "no credentials").WithHint("aws sso login")
	}
	c := open(t)
	for _, test := range []struct {
		name   string
		spoil  func(env *cli.Env)
		args   []string
		code   int
		stdout bool
		says   []string
	}{
		{"neither", func(env *cli.Env) { env.AWS, env.Kube = signedOut, unopened }, nil, 1, false, []string{"could not check", "AWS (", kubeless}},
		{"only AWS, without credentials", func(env *cli.Env) { env.AWS = signedOut }, []string{"--no-kubernetes"}, 1, false, []string{"could not check AWS ("}},
		{"only AWS readable", func(env *cli.Env) { env.Kube = unopened }, nil, 1, true, []string{"could not check Kubernetes ("}},
		{"only Kubernetes readable", func(env *cli.Env) { env.AWS = signedOut }, nil, 1, true, []string{"could not check AWS ("}},
		{"only AWS readable, --no-kubernetes", func(env *cli.Env) { env.Kube = unopened }, []string{"--no-kubernetes"}, 0, true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			env := c.doctorEnv(&stdout, &stderr, test.args...)
			test.spoil(&env)
			if code := cli.Run(t.Context(), env); code != test.code || (stdout.Len() > 0) != test.stdout {
				t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
			}
			for _, text := range test.says {
				if !strings.Contains(stderr.String(), text) {
					t.Errorf("%q is not in %s", text, stderr.String())
				}
			}
			if lines := strings.Count(stderr.String(), "\n"); len(test.says) > 0 && lines != 2 {
				t.Errorf("an error and what to try are %d lines:\n%s", lines, stderr.String())
			}
		})
	}
}

// TestDoctorGolden checks the output formats of findings.
func TestDoctorGolden(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.policy(t, "prod", "")
	delete(c.tools, "helm")
	delete(c.account.Roles, "AWSServiceRoleForEC2Spot")
	bus, _ := c.broker.FindBus("default")
	for _, r := range c.plan.Rules {
		if r.Service == "interruption" {
			if err := bus.PutRule(memqueue.Rule{Name: r.Name, Pattern: r.Pattern}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.denied = "/apis/coordination"
	for name, args := range map[string][]string{"doctor": nil, "doctor-json": {"-o", "json"}} {
		_, text, code := c.doctor(t, args...)
		golden.Compare(t, "testdata/"+name+".golden", fmt.Sprintf("$ joist doctor %s\n%s\nexit code %d\n", strings.Join(args, " "), text, code))
	}
}

// TestDoctorWithoutSimulatorPermission checks that doctor prints one note for all roles if it
// may not call IAM's simulator.
func TestDoctorWithoutSimulatorPermission(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.account.Denied["SimulatePrincipalPolicy"] = true
	out, text, code := c.doctor(t, "-o", "json")
	if code != 0 || len(out.Findings) != 0 || len(out.Skipped) != 1 || !strings.Contains(out.Skipped[0].Fix, "grant iam:SimulatePrincipalPolicy") {
		t.Errorf("code %d: %s", code, text)
	}
}

// TestDoctorSimulatesAllActions checks that doctor simulates exactly the actions of each
// role. Each action is simulated on a resource for which the role has it; a healthy
// installation shows that each pair of action and resource is allowed.
func TestDoctorSimulatesAllActions(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.kube[classes] = nodeClass("default", "") // so that the launcher manages instance profiles
	asked, judge := map[string][]string{}, c.account.Judge
	var mu sync.Mutex
	c.account.Judge = func(arn, action, resource string, context map[string][]string) string {
		mu.Lock()
		defer mu.Unlock()
		asked[template.Name(arn)] = append(asked[template.Name(arn)], action)
		return judge(arn, action, resource, context)
	}
	if _, text, code := c.doctor(t); code != 0 {
		t.Fatalf("code %d: %s", code, text)
	}
	scope := scopeOf(c.plan)
	for _, service := range slices.Concat(topology.ExternalServices, topology.ClusterServices, []string{topology.Scheduler}) {
		may, err := scope.ServicePolicy(service)
		if err != nil {
			t.Fatal(err)
		}
		got := asked["prod-joist-"+service]
		slices.Sort(got)
		if diff := cmp.Diff(may.Actions(), slices.Compact(got)); diff != "" {
			t.Errorf("the actions of %s and the actions that are requested (-role +asked):\n%s", service, diff)
		}
	}
}
