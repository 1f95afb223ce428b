package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/joist-autoscaler/joist/integration/fakeaws/account"
	fakeec2 "github.com/joist-autoscaler/joist/integration/fakeaws/ec2"
	fakests "github.com/joist-autoscaler/joist/integration/fakeaws/sts"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/memblob"
	"github.com/joist-autoscaler/joist/shared/memcloud"
	"github.com/joist-autoscaler/joist/shared/memqueue"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

const (
	sendPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}]}`
	nodeRole   = "arn:aws:iam::123456789012:role/KarpenterNodeRole-prod"
	podRole    = "arn:aws:iam::123456789012:role/prod-joist-watcher"
)

// clinic is a whole installation to be examined.
type clinic struct {
	*world
	account *account.Service
	cloud   *memcloud.Cloud
	blobs   *memblob.Store
	// kube are the API server's answers by path; a path that is not there is Missing.
	kube map[string]string
	// denied are the beginnings of paths that may not be read.
	denied string
	tools  map[string]string
}

// open makes a sound installation.
func open(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{account: &account.Service{
		Mode: "API", Entries: map[string]string{nodeRole: "EC2_LINUX"}, Functions: map[string]account.Function{}, Denied: map[string]bool{},
		Roles: map[string]account.Role{
			"AWSServiceRoleForEC2Spot": {},
			"KarpenterNodeRole-prod": {
				ARN: nodeRole, Trust: `{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`,
				Policies: []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly", "AmazonSSMManagedInstanceCore"},
			},
			"prod-joist-watcher": {ARN: podRole, Trust: `{"Statement":[{"Effect":"Allow","Principal":{"Federated":"x"},"Action":"sts:AssumeRoleWithWebIdentity",` +
				`"Condition":{"StringEquals":{"oidc.eks:sub":"system:serviceaccount:joist:joist-watcher"}}}]}`},
		},
	}, kube: healthy(), tools: map[string]string{"helm": "v3.19.0+g1", "kubectl": "Client Version: v1.36.1\nKustomize Version: v5", "aws": "aws-cli/2.31.0 Python/3.13"}}
	model := memcloud.New(memcloud.Options{Now: time.Now, Seed: 1, Region: "eu-west-1"})
	c.cloud = model
	c.world = start(t, c.account, fakeec2.New(model), fakests.New(model))
	c.clock.Advance(time.Since(noon)) // The answers' dates are real.
	c.clock.tick()
	tags := map[string]string{"karpenter.sh/discovery": "prod"}
	model.AddSubnet(cloud.Subnet{VPC: "vpc-1", Zone: "eu-west-1a", FreeIPs: 100, Tags: tags})
	model.AddSecurityGroup(cloud.SecurityGroup{ID: "sg-1", Name: "nodes", Tags: tags})
	for _, q := range c.plan.Queues {
		c.policy(t, q.Name, sendPolicy)
		if q.Service != "lifecycle" {
			c.account.Functions["prod-joist-"+q.Service] = account.Function{
				TimeoutSeconds: int(q.Timeout.Seconds()), Mappings: map[string]string{"arn:aws:sqs:eu-west-1:123456789012:" + q.Name: "Enabled"},
			}
		}
	}
	c.blobs = memblob.New(memblob.Options{Now: c.clock.Now, Seed: 1})
	c.write(t, scheduling.SnapshotKind, scheduling.Snapshot{Taken: c.clock.Now(), Cluster: "prod"})
	c.write(t, catalog.Kind, catalog.Catalogue{AsOf: c.clock.Now()})
	return c
}

// policy sets the policy of a queue.
func (c *clinic) policy(t *testing.T, name, policy string) {
	t.Helper()
	url := c.QueueURL(name)
	_, err := sqs.NewFromConfig(c.Config()).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": policy}})
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a document the latest of its kind.
func (c *clinic) write(t *testing.T, kind string, document any) {
	t.Helper()
	ref, err := blob.Put(t.Context(), c.blobs, c.clock.Now(), kind, document)
	if err == nil {
		err = blob.Point(t.Context(), c.blobs, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	ourDeployments   = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/component%20in%20(watcher,lifecycle)"
	theirDeployments = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/name%3Dkarpenter"
	leases           = "/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3Dkarpenter-leader-election"
)

func deployment(name, image, account string, replicas int) string {
	return fmt.Sprintf(`{"items":[{"metadata":{"namespace":"joist","name":%q},"spec":{"replicas":%d,"template":{"spec":{"serviceAccountName":%q,"containers":[{"image":%q}]}}}}]}`, name, replicas, account, image)
}

// healthy are the answers of an API server with which nothing is wrong.
func healthy() map[string]string {
	out := map[string]string{
		"/version":     `{}`,
		ourDeployments: deployment("joist-watcher", "ghcr.io/joist/watcher:v1.0.0", "joist-watcher", 2), theirDeployments: `{"items":[]}`,
		leases: `{"items":[]}`,
		"/api/v1/namespaces/joist/serviceaccounts/joist-watcher": `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"` + podRole + `"}}}`,
	}
	for group, kinds := range map[string]map[string][]string{
		"karpenter.sh":         {"v1": {"nodepools", "nodepools/status", "nodeclaims"}, "v1alpha1": {"nodeoverlays"}},
		"karpenter.k8s.aws":    {"v1": {"ec2nodeclasses"}},
		"autoscaling.x-k8s.io": {"v1beta1": {"capacitybuffers"}},
	} {
		var versions, names []string
		for version, list := range kinds {
			versions = append(versions, fmt.Sprintf(`{"groupVersion":"%s/%s"}`, group, version))
			names = nil
			for _, name := range list {
				names = append(names, fmt.Sprintf(`{"name":%q}`, name))
			}
			out["/apis/"+group+"/"+version] = `{"resources":[` + strings.Join(names, ",") + `]}`
		}
		out["/apis/"+group] = `{"versions":[` + strings.Join(versions, ",") + `]}`
	}
	return out
}

// examined is what the tests read of the contract.
type examined struct {
	Findings []struct{ Check, Severity, Subject, What, Fix string }
	Unseen   []struct{ What, Why, Fix string }
}

// doctor examines the installation.
func (c *clinic) doctor(t *testing.T, args ...string) (out examined, text string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := c.env(&stdout, &stderr, append([]string{"doctor"}, args...)...)
	env.Store = func(context.Context, string, string) (blob.Store, error) { return c.blobs, nil }
	env.Kube = func(string, string) (func(context.Context, string) ([]byte, error), error) {
		return func(_ context.Context, path string) ([]byte, error) {
			if c.denied != "" && strings.HasPrefix(path, c.denied) {
				return nil, fault.F("reading "+path, fault.Denied, "forbidden")
			}
			text, there := c.kube[path]
			if !there {
				return nil, fault.F("reading "+path, fault.Missing, "not found")
			}
			return []byte(text), nil
		}, nil
	}
	env.Run = func(_ context.Context, name string, _ ...string) (string, error) {
		if told, there := c.tools[name]; there {
			return told, nil
		}
		return "", fault.F("running "+name, fault.Missing, "not found")
	}
	code = cli.Run(t.Context(), env)
	if strings.HasPrefix(stdout.String(), "{") {
		if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, stdout.String() + stderr.String(), code
}

// TestDoctorFindsNothing where nothing is wrong, and all of it in time.
func TestDoctorFindsNothing(t *testing.T) {
	c := open(t)
	begun := time.Now()
	_, text, code := c.doctor(t)
	if code != 0 || text != "Nothing is wrong with prod.\n" {
		t.Errorf("code %d: %s", code, text)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestDoctorFinds spoils one thing in the account, in the cluster or on the machine.
func TestDoctorFinds(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, c *clinic)
		check string
	}{
		{"A045 no policy", func(t *testing.T, c *clinic) { c.policy(t, "prod", "") }, "policy-missing"},
		{"A047 a rule has another pattern", func(t *testing.T, c *clinic) {
			t.Helper()
			bus, _ := c.broker.LookupBus("default")
			q, _ := c.plan.Queue("interruption")
			if err := bus.Rule(memqueue.Rule{Name: "prod-joist-spot", Pattern: `{"source":["none"]}`, Targets: []memqueue.Target{{Queue: q.Name, DeadLetter: q.Dead}}}); err != nil {
				t.Fatal(err)
			}
		}, "rule-missing"},
		{"no redrive", func(_ *testing.T, c *clinic) {
			q, _ := c.plan.Queue("planner")
			c.broker.Queue(q.Name, memqueue.QueueOptions{Visibility: q.Visibility, Retention: q.Retention})
		}, "redrive-missing"},
		{"visibility", func(_ *testing.T, c *clinic) {
			c.account.Functions["prod-joist-planner"] = account.Function{TimeoutSeconds: 151, Mappings: c.account.Functions["prod-joist-planner"].Mappings}
		}, "visibility-short"},
		{"mapping", func(_ *testing.T, c *clinic) {
			c.account.Functions["prod-joist-planner"] = account.Function{TimeoutSeconds: 150}
		}, "mapping-missing"},
		{"A029 spot role", func(_ *testing.T, c *clinic) { delete(c.account.Roles, "AWSServiceRoleForEC2Spot") }, "spot-role"},
		{"A037 node role", func(_ *testing.T, c *clinic) { delete(c.account.Roles, "KarpenterNodeRole-prod") }, "node-role-missing"},
		{"A027 access", func(_ *testing.T, c *clinic) { clear(c.account.Entries) }, "node-access"},
		{"A027 aws-auth", func(_ *testing.T, c *clinic) { c.account.Mode = "CONFIG_MAP" }, "node-access"},
		{"A035 tags", func(_ *testing.T, c *clinic) {
			c.cloud.AddSecurityGroup(cloud.SecurityGroup{ID: "sg-2", Name: "others", Tags: map[string]string{"karpenter.sh/discovery": "prod"}})
		}, "discovery-twice"},
		{"A039 trust", func(_ *testing.T, c *clinic) {
			r := c.account.Roles["prod-joist-watcher"]
			r.Trust = strings.ReplaceAll(r.Trust, "joist:joist-watcher", "kube-system:karpenter")
			c.account.Roles["prod-joist-watcher"] = r
		}, "trust-subject"},
		{"Karpenter runs", func(_ *testing.T, c *clinic) {
			c.kube[theirDeployments] = strings.Replace(deployment("karpenter", "public.ecr.aws/karpenter/controller:1.8.0", "karpenter", 2), `"namespace":"joist"`, `"namespace":"kube-system"`, 1)
		}, "karpenter-runs"},
		{"Karpenter leads", func(_ *testing.T, c *clinic) {
			c.kube[leases] = `{"items":[{"metadata":{"namespace":"kube-system"},"spec":{"holderIdentity":"karpenter-7_x","renewTime":"` + time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") + `"}}]}`
		}, "karpenter-leads"},
		{"A084 replicas", func(_ *testing.T, c *clinic) {
			c.kube[ourDeployments] = deployment("joist-watcher", "ghcr.io/joist/watcher:v1.0.0", "joist-watcher", 1)
		}, "replicas-one"},
		{"A021 version", func(_ *testing.T, c *clinic) {
			c.kube[ourDeployments] = deployment("joist-watcher", "ghcr.io/joist/watcher:${KARPENTER_VERSION}", "joist-watcher", 2)
		}, "variable-unset"},
		{"definitions", func(_ *testing.T, c *clinic) { c.kube["/apis/karpenter.k8s.aws"] = `{"versions":[]}` }, "crd-missing"},
		{"an old snapshot", func(t *testing.T, c *clinic) {
			t.Helper()
			c.write(t, scheduling.SnapshotKind, scheduling.Snapshot{Taken: c.clock.Now().Add(-3 * time.Hour), Cluster: "prod"})
		}, "snapshot-old"},
		{"the clock", func(_ *testing.T, c *clinic) { c.clock.Advance(-10 * time.Minute) }, "clock"},
		{"A018 no kubectl", func(_ *testing.T, c *clinic) { delete(c.tools, "kubectl") }, "tool-missing"},
		{"A036 an old helm", func(_ *testing.T, c *clinic) { c.tools["helm"] = "v3.8.0" }, "tool-old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := open(t)
			test.spoil(t, c)
			out, text, code := c.doctor(t, "-o", "json")
			if code != 2 || len(out.Findings) != 1 || out.Findings[0].Check != test.check || len(out.Unseen) > 0 {
				t.Errorf("code %d, want %s: %s", code, test.check, text)
			}
		})
	}
}

// TestDoctorSaysWhatItMayNotSee: each right that is lacking is named, and what is left is
// examined all the same.
func TestDoctorSaysWhatItMayNotSee(t *testing.T) {
	c := open(t)
	c.account.Denied = map[string]bool{"GetRole": true, "GetFunctionConfiguration": true}
	c.denied = "/apis/apps"
	c.policy(t, "prod", "")
	out, text, code := c.doctor(t, "-o", "json")
	if code != 2 || len(out.Findings) != 1 || out.Findings[0].Check != "policy-missing" {
		t.Errorf("code %d: %s", code, text)
	}
	for _, right := range []string{"grant iam:GetRole", "grant lambda:GetFunctionConfiguration", "to list deployments.apps"} {
		if !strings.Contains(text, right) {
			t.Errorf("%s is not named in %s", right, text)
		}
	}
	if len(out.Unseen) != 8 {
		t.Errorf("%d things could not be looked at: %s", len(out.Unseen), text)
	}
}

// TestDoctorGolden holds the forms in which findings are told.
func TestDoctorGolden(t *testing.T) {
	c := open(t)
	c.policy(t, "prod", "")
	delete(c.tools, "helm")
	delete(c.account.Roles, "AWSServiceRoleForEC2Spot")
	bus, _ := c.broker.LookupBus("default")
	for _, r := range c.plan.Rules {
		if r.Service == "interruption" {
			if err := bus.Rule(memqueue.Rule{Name: r.Name, Pattern: r.Pattern}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.denied = "/apis/coordination"
	for name, args := range map[string][]string{"doctor": nil, "doctor-json": {"-o", "json"}} {
		_, text, code := c.doctor(t, args...)
		compare(t, name, fmt.Sprintf("$ joist doctor %s\n%s\nexit code %d\n", strings.Join(args, " "), text, code))
	}
}
