package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/joist-autoscaler/joist/infra/evaluator"
	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/account"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	fakeec2 "github.com/joist-autoscaler/joist/integration/environment/fakeaws/ec2"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
	fakests "github.com/joist-autoscaler/joist/integration/environment/fakeaws/sts"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const (
	sendPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}]}`
	nodeRole   = "arn:aws:iam::123456789012:role/KarpenterNodeRole-prod"
	podRole    = "arn:aws:iam::123456789012:role/prod-joist-watcher"
	issuer     = "oidc.eks.eu-west-1.amazonaws.com/id/ABC"
	// lifecycleRole comes from a Pod Identity association, podRole from an annotation.
	lifecycleRole = "arn:aws:iam::123456789012:role/prod-joist-lifecycle"
)

// doctorAccount is an installation that joist doctor checks.
type doctorAccount struct {
	*world
	account *account.Service
	cloud   *memcloud.Cloud
	blobs   *memblob.Store
	// kube has the API server's responses by path; other paths return fault.Missing.
	kube map[string]string
	// denied is the prefix of paths that may not be read.
	denied string
	tools  map[string]string
	// roles are the roles of the CDK app's template, by name.
	roles map[string]authorization.Role
}

// open returns an installation without problems.
func open(t *testing.T) *doctorAccount {
	t.Helper()
	c := &doctorAccount{account: &account.Service{
		Mode: "API", Entries: map[string]string{nodeRole: "EC2_LINUX"}, Functions: map[string]account.Function{}, Denied: map[string]bool{},
		Roles: map[string]account.Role{
			"AWSServiceRoleForEC2Spot": {},
			"KarpenterNodeRole-prod": {
				ARN: nodeRole, Trust: `{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`,
				Policies: []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly", "AmazonSSMManagedInstanceCore"},
			},
			"prod-joist-watcher": {ARN: podRole, Trust: `{"Statement":[{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::123456789012:oidc-provider/` + issuer + `"},"Action":"sts:AssumeRoleWithWebIdentity",` +
				`"Condition":{"StringEquals":{"oidc.eks:sub":"system:serviceaccount:joist:joist-watcher"}}}]}`},
		},
		Issuer: "https://" + issuer, Profiles: map[string]string{"KarpenterNodeInstanceProfile-prod": "KarpenterNodeRole-prod"}, Pods: map[string]string{"joist/joist-lifecycle": lifecycleRole},
	}, kube: healthy(), tools: map[string]string{"helm": "v3.19.0+g1", "kubectl": "Client Version: v1.36.1\nKustomize Version: v5", "aws": "aws-cli/2.31.0 Python/3.13"}}
	made := deployed(t, "fresh")
	c.createRoles(t, made)
	model := memcloud.New(memcloud.Options{Now: time.Now, Seed: 1, Region: "eu-west-1"})
	c.cloud = model
	c.world = start(t, c.account, fakeec2.New(model), fakests.New(model))
	c.clock.Advance(time.Since(noon)) // Responses have real dates.
	c.clock.tick()
	tags := map[string]string{"karpenter.sh/discovery": "prod"}
	model.AddSubnet(cloud.Subnet{VPC: "vpc-1", Zone: "eu-west-1a", FreeIPs: 100, Tags: tags})
	model.AddSecurityGroup(cloud.SecurityGroup{ID: "sg-1", Name: "nodes", Tags: tags})
	for _, q := range c.plan.Queues {
		c.policy(t, q.Name, sendPolicy)
	}
	c.setUpMachine(made)
	c.blobs = memblob.New(memblob.Options{Now: c.clock.Now, Seed: 1})
	c.write(t, planning.SnapshotKind, planning.Snapshot{TakenAt: c.clock.Now(), Cluster: "prod"})
	c.write(t, catalog.Kind, catalog.Catalogue{AsOf: c.clock.Now()})
	return c
}

// setUpMachine adds the template's functions with their mappings to the account.
func (c *doctorAccount) setUpMachine(made stack.Stack) {
	clear(c.account.Functions)
	for _, f := range made.Functions {
		c.account.Functions[f.FunctionName] = account.Function{Role: f.Role, TimeoutSeconds: f.Timeout, Environment: f.Environment.Variables, Mappings: map[string]string{}}
	}
	for _, m := range made.Mappings {
		c.account.Functions[template.Name(m.FunctionName)].Mappings[m.EventSourceArn] = "Enabled"
	}
}

// share makes the cluster one of two that share functions.
func (c *doctorAccount) share(t *testing.T) {
	t.Helper()
	made := deployed(t, "shared")
	for _, service := range topology.ExternalServices {
		delete(c.account.Roles, "prod-joist-"+service)
	}
	c.createRoles(t, made)
	c.setUpMachine(made)
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod", Functions: "joist-all"})
	if err != nil {
		t.Fatal(err)
	}
	addPersonPolicies(t, c.authorizer, scopeOf(plan))
}

// createRoles adds the services' roles of the template to the account, and makes IAM's
// simulator evaluate their policies.
func (c *doctorAccount) createRoles(t *testing.T, made stack.Stack) {
	t.Helper()
	deployment, err := authorization.ReadDeployment(made, authorization.Place{Partition: "aws", Account: "123456789012", Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	c.roles = deployment.Roles
	trusts := map[string]string{}
	for _, r := range made.Roles {
		trusts[r.RoleName] = string(r.AssumeRolePolicyDocument)
	}
	for name, role := range c.roles {
		if _, there := c.account.Roles[name]; !there {
			c.account.Roles[name] = account.Role{ARN: role.ARN, Trust: trusts[name]}
		}
	}
	// The simulator does not evaluate trust policies: it evaluates sts:AssumeRole by the
	// caller's policies, as if the role trusted the whole account
	// (https://github.com/aws/aws-cli/issues/10314).
	trusting, err := evaluator.Parse("trust", []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::123456789012:root"},"Action":"sts:AssumeRole"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c.account.Judge = func(arn, action, resource string, context map[string][]string) string {
		policies := evaluator.Policies{Identity: c.roles[template.Name(arn)].Policies}
		if action == "sts:AssumeRole" {
			policies.Resource = []evaluator.Policy{trusting}
		}
		decision, err := policies.Evaluate(evaluator.Request{
			Principal: evaluator.Principal{Kind: evaluator.Role, Name: arn}, Action: action, Resource: resource, Owner: "123456789012", Context: context,
		})
		switch {
		case err != nil:
			t.Errorf("simulating %s on %s: %v", action, resource, err)
			return "implicitDeny"
		case decision.Allowed:
			return "allowed"
		case decision.By != "":
			return "explicitDeny"
		}
		return "implicitDeny"
	}
}

// denyAction makes IAM deny an action to a role of the template, implicitly or explicitly.
func (c *doctorAccount) denyAction(t *testing.T, name, action string, explicit bool) {
	t.Helper()
	judge := c.account.Judge
	c.account.Judge = func(arn, asked, resource string, context map[string][]string) string {
		switch {
		case template.Name(arn) != name || asked != action:
			return judge(arn, asked, resource, context)
		case explicit:
			return "explicitDeny"
		}
		return "implicitDeny"
	}
}

// policy sets a queue's policy.
func (c *doctorAccount) policy(t *testing.T, name, policy string) {
	t.Helper()
	url := c.QueueURL(name)
	_, err := sqs.NewFromConfig(c.Config()).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": policy}})
	if err != nil {
		t.Fatal(err)
	}
}

// write stores a document as the latest of its kind.
func (c *doctorAccount) write(t *testing.T, kind string, document any) {
	t.Helper()
	ref, err := blob.Put(t.Context(), c.blobs, c.clock.Now(), kind, document)
	if err == nil {
		err = blob.SetLatest(t.Context(), c.blobs, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	ourDeployments   = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/component%20in%20(watcher,lifecycle)"
	theirDeployments = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/name%3Dkarpenter"
	classes          = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
	leases           = "/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3Dkarpenter-leader-election"
)

// nodeClass returns a node class that names the instance profile, or a role if profile is
// empty.
func nodeClass(name, profile string) string {
	identity := `"role":"KarpenterNodeRole-prod"`
	if profile != "" {
		identity = fmt.Sprintf(`"instanceProfile":%q`, profile)
	}
	const terms = `[{"tags":{"karpenter.sh/discovery":"prod"}}]`
	return list(fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s,"subnetSelectorTerms":%s,"securityGroupSelectorTerms":%s}}`, name, identity, terms, terms))
}

// deployment returns a Deployment of a service or of another program.
func deployment(name, image, account string, replicas int) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"joist","name":%q,"labels":{"app.kubernetes.io/component":%q}},"spec":{"replicas":%d,"template":{"spec":{"serviceAccountName":%q,"containers":[{"image":%q}]}}}}`,
		name, strings.TrimPrefix(name, "joist-"), replicas, account, image)
}

// services returns the Deployments of watcher and lifecycle.
func services(tag string, replicas int) string {
	return list(deployment("joist-watcher", "ghcr.io/joist/watcher:"+tag, "joist-watcher", replicas), deployment("joist-lifecycle", "ghcr.io/joist/lifecycle:v1.0.0", "joist-lifecycle", 2))
}

func list(items ...string) string { return `{"items":[` + strings.Join(items, ",") + `]}` }

// healthy returns the responses of an API server without problems.
func healthy() map[string]string {
	out := map[string]string{
		"/version":     `{}`,
		ourDeployments: services("v1.0.0", 2), theirDeployments: `{"items":[]}`,
		leases: `{"items":[]}`, classes: nodeClass("default", "KarpenterNodeInstanceProfile-prod"),
		"/api/v1/namespaces/joist/serviceaccounts/joist-lifecycle": `{"metadata":{}}`,
		"/api/v1/namespaces/joist/serviceaccounts/joist-watcher":   `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"` + podRole + `"}}}`,
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

// examined is the part of doctor's JSON output that the tests read.
type examined struct {
	Findings []struct{ Check, Severity, Subject, Message, Fix string }
	Skipped  []struct{ Subject, Reason, Fix string }
}

// doctor runs joist doctor on the installation.
func (c *doctorAccount) doctor(t *testing.T, args ...string) (out examined, text string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), c.doctorEnv(&stdout, &stderr, args...))
	if strings.HasPrefix(stdout.String(), "{") {
		if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, stdout.String() + stderr.String(), code
}

// doctorEnv returns the environment in which doctor checks the installation.
func (c *doctorAccount) doctorEnv(stdout, stderr *bytes.Buffer, args ...string) cli.Env {
	env := c.env(stdout, stderr, append([]string{"doctor"}, args...)...)
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
		if recorded, there := c.tools[name]; there {
			return recorded, nil
		}
		return "", fault.F("running "+name, fault.Missing, "not found")
	}
	return env
}
