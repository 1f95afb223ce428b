package doctor_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func queueARN(queue string) string { return "arn:aws:sqs:eu-west-1:123456789012:" + queue }

const (
	queuePolicy = `{"Statement":[{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},"Action":"sqs:SendMessage","Resource":"*"}]}`
	nodeTrust   = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}}`
	podTrust    = `{"Statement":[{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::1:oidc-provider/oidc.eks/id/1"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{` +
		`"oidc.eks/id/1:aud":"sts.amazonaws.com","oidc.eks/id/1:sub":"system:serviceaccount:joist:joist-watcher"}}}]}`
)

const podsTrust = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`

// soundFacts returns the facts of an installation without problems.
func soundFacts(t *testing.T) doctor.Facts {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	yes, empty, skew, trust, pods, issuer := true, "", 3*time.Second, podTrust, podsTrust, "oidc.eks/id/1"
	written := now.Add(-10 * time.Minute)
	f := doctor.Facts{
		Plan: plan, Now: now, Queues: map[string]*doctor.Queue{}, Rules: map[string][]doctor.Rule{}, Functions: map[string]*doctor.Function{},
		SpotRole: &yes,
		NodeRole: &doctor.NodeRole{Name: "KarpenterNodeRole-prod", ARN: "arn:aws:iam::1:role/KarpenterNodeRole-prod", Trust: nodeTrust, Policies: []string{
			"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore",
		}},
		Access:         &doctor.Access{Mode: "API_AND_CONFIG_MAP", Entry: &yes, AuthMap: &empty},
		Subnets:        []doctor.Tagged{{"subnet-1", "vpc-1", "a"}, {"subnet-2", "vpc-1", "b"}},
		SecurityGroups: []doctor.Tagged{{"sg-1", "vpc-1", ""}},
		Discovery:      &doctor.DiscoveryUse{Subnets: true, SecurityGroups: true},
		Lease:          &doctor.Lease{Namespace: "kube-system", Holder: "joist", Renewed: now},
		Deployments: []doctor.Deployment{
			{Namespace: "joist", Name: "joist-watcher", Replicas: 2, Images: []string{"ghcr.io/x/joist-watcher:v1.0.0"}, Environ: map[string]string{"CLUSTER_NAME": "prod"}},
			{Namespace: "kube-system", Name: "karpenter", Karpenter: true},
		},
		Location: doctor.Location{Partition: "aws", Account: "1", Region: "eu-west-1"}, Issuer: &issuer,
		Accounts: []doctor.Account{
			{Namespace: "joist", Name: "joist-watcher", Service: "watcher", Role: "arn:aws:iam::1:role/prod-joist-watcher", Trust: &trust},
			{Namespace: "joist", Name: "joist-lifecycle", Service: "lifecycle", PodIdentity: &doctor.Association{ID: "a-1", Role: "arn:aws:iam::1:role/prod-joist-lifecycle"}, Trust: &pods},
		},
		Roles:    []doctor.Role{{Service: "launcher", Name: "prod-joist-launcher"}},
		Profiles: []doctor.Profile{{Name: "nodes", Classes: []string{"default"}, Role: "KarpenterNodeRole-prod"}},
		Resources: []string{
			"karpenter.sh/v1/nodepools", "karpenter.sh/v1/nodeclaims", "karpenter.k8s.aws/v1/ec2nodeclasses", "karpenter.sh/v1alpha1/nodeoverlays",
			"autoscaling.x-k8s.io/v1beta1/capacitybuffers",
		},
		Snapshot: &written, Catalogue: &written, Skew: &skew,
		Tools:   []doctor.Tool{{"helm", "v3.19.0"}, {"kubectl", "v1.36.1"}, {"aws", "2.31.0"}},
		Environ: map[string]string{"CLUSTER_NAME": "prod"},
	}
	f.Queues[plan.AuditDead] = &doctor.Queue{Name: plan.AuditDead, ARN: queueARN(plan.AuditDead)}
	f.Rules[plan.AuditLogGroup] = []doctor.Rule{{Name: "prod-joist-audit", Bus: plan.Bus, Enabled: true, DeadARN: queueARN(plan.AuditDead)}}
	for _, q := range plan.Queues {
		f.Queues[q.Dead] = &doctor.Queue{Name: q.Dead, ARN: queueARN(q.Dead), Retention: q.DeadRetention}
		f.Queues[q.Name] = &doctor.Queue{
			Name: q.Name, ARN: queueARN(q.Name), Visibility: q.Visibility, Retention: q.Retention, Policy: queuePolicy, DeadARN: queueARN(q.Dead), MaxReceives: q.MaxReceives,
		}
		f.Functions[q.Service] = &doctor.Function{Name: "prod-joist-" + q.Service, Role: "arn:aws:iam::1:role/prod-joist-" + q.Service, Timeout: q.Timeout, Mapped: true, Enabled: true}
		for _, r := range plan.Rules {
			if r.Service == q.Service {
				f.Rules[q.Name] = append(f.Rules[q.Name], doctor.Rule{Name: r.Name, Bus: r.Bus, Pattern: r.Pattern, Enabled: true, DeadARN: queueARN(q.Dead), InputPath: r.InputPath})
			}
		}
	}
	return f
}

// TestNoFindings examines a sound installation, and one without any facts.
func TestNoFindings(t *testing.T) {
	if found := doctor.Examine(soundFacts(t)); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if found := doctor.Examine(doctor.Facts{Plan: soundFacts(t).Plan, Now: now}); len(found) > 0 {
		t.Errorf("without facts: %+v", found)
	}
}

// TestOneBadFact changes one fact at a time and expects exactly one finding.
func TestOneBadFact(t *testing.T) {
	no := false
	queue := func(f doctor.Facts) *doctor.Queue { return f.Queues["prod"] }
	for _, test := range []struct {
		name  string
		edit  func(f *doctor.Facts)
		check string
		says  string
		fix   string
	}{
		{"the queue has another name", func(f *doctor.Facts) { f.Queues["prod"] = nil }, "queue-missing", "receives nothing", "--interruption-queue"},
		{"no DLQ", func(f *doctor.Facts) { f.Queues["prod-joist-planner-dead"] = nil }, "dlq-missing", "planner", "cdk deploy"},
		{"no DLQ of the audit log", func(f *doctor.Facts) { f.Queues["prod-joist-audit-dead"] = nil }, "dlq-missing", "only in the bus archive", "cdk deploy"},
		{"no rule of the audit log", func(f *doctor.Facts) { f.Rules[f.Plan.AuditLogGroup] = []doctor.Rule{} }, "audit-rule-missing", "only in the bus archive", "enable-rule"},
		{"the rule of the audit log is disabled", func(f *doctor.Facts) { f.Rules[f.Plan.AuditLogGroup][0].Enabled = false }, "audit-rule-missing", "", ""},
		{"the rule of the audit log has no DLQ", func(f *doctor.Facts) { f.Rules[f.Plan.AuditLogGroup][0].DeadARN = "" }, "rule-dlq-missing", "", "prod-joist-audit-dead"},
		{"DLQ messages", func(f *doctor.Facts) { f.Queues["prod-joist-planner-dead"].Messages = 3 }, "dlq-messages", "3 DLQ messages of the planner", "joist dead list --cluster prod --queue planner"},
		{"DLQ messages of the audit log", func(f *doctor.Facts) { f.Queues["prod-joist-audit-dead"].Messages = 1 }, "dlq-messages", "", "--queue audit"},
		{"no policy", func(f *doctor.Facts) { queue(*f).Policy = "" }, "queue-policy-missing", "never receives events", "events.amazonaws.com"},
		{"a policy for SQS alone", func(f *doctor.Facts) { queue(*f).Policy = strings.Replace(queuePolicy, "events", "s3", 1) }, "queue-policy-missing", "", ""},
		{"a policy that denies", func(f *doctor.Facts) { queue(*f).Policy = strings.Replace(queuePolicy, "Allow", "Deny", 1) }, "queue-policy-missing", "", ""},
		{"an invalid policy", func(f *doctor.Facts) { queue(*f).Policy = "{" }, "queue-policy-invalid", "", ""},
		{"no rules", func(f *doctor.Facts) { f.Rules["prod"] = nil }, "rules-missing", "never receives events", "Terraform"},
		{"one rule is missing", func(f *doctor.Facts) {
			f.Rules["prod"] = slices.DeleteFunc(f.Rules["prod"], func(r doctor.Rule) bool { return strings.Contains(r.Name, "spot") })
		}, "rule-missing", "EC2 Spot Instance Interruption Warning", ""},
		{"a rule is disabled", func(f *doctor.Facts) { f.Rules["prod-joist-lifecycle"][0].Enabled = false }, "rules-missing", "", ""},
		{"a rule of another cluster's facts", func(f *doctor.Facts) {
			r := &f.Rules["prod-joist-lifecycle"][0]
			r.Pattern = strings.Replace(r.Pattern, `"prod"`, `"test"`, 1)
		}, "rules-missing", "", ""},
		{"a rule does not compare the types", func(f *doctor.Facts) {
			var types []string
			for _, one := range f.Plan.Rules[len(f.Plan.Rules)-1].Types {
				types = append(types, strconv.Quote(string(one)))
			}
			f.Rules["prod-joist-lifecycle"][0].Pattern = `{"source":[{"prefix":"joist/"}],"detail-type":[` + strings.Join(types, ",") + `],"detail":{"cluster":["prod"]}}`
		}, "rule-pattern-incomplete", "can send every type", "cdk deploy"},
		{"a rule has no DLQ", func(f *doctor.Facts) { f.Rules["prod"][0].DeadARN = "" }, "rule-dlq-missing", "", "DeadLetterConfig"},
		{"a rule sends the whole event", func(f *doctor.Facts) { f.Rules["prod-joist-lifecycle"][0].InputPath = "" }, "rule-input-path", "", "$.detail"},
		{"no redrive", func(f *doctor.Facts) { queue(*f).DeadARN = "" }, "redrive-missing", "", "RedrivePolicy"},
		{"redrive elsewhere", func(f *doctor.Facts) { queue(*f).DeadARN = queueARN("other") }, "redrive-wrong-dlq", "other", ""},
		{"redrive soon", func(f *doctor.Facts) { queue(*f).MaxReceives = 3 }, "redrive-too-soon", "after 3", ""},
		{"visibility", func(f *doctor.Facts) { queue(*f).Visibility = 59 * time.Second }, "visibility-short", "6 times the timeout 10s of the function prod-joist-interruption", "60"},
		{"retention", func(f *doctor.Facts) { queue(*f).Retention = 299 * time.Second }, "retention-short", "", "300"},
		{"no mapping", func(f *doctor.Facts) { f.Functions["planner"].Mapped, f.Functions["planner"].Enabled = false, false }, "event-source-mapping-missing", "prod-joist-planner", ""},
		{"a mapping is disabled", func(f *doctor.Facts) { f.Functions["planner"].Enabled = false }, "event-source-mapping-disabled", "", "--enabled"},
		{"a mapping's function is missing", func(f *doctor.Facts) {
			f.Functions["planner"] = &doctor.Function{Name: "prod-joist-planner", Missing: true, Mapped: true, Enabled: true}
		}, "function-missing", "the function does not exist", "delete-event-source-mapping"},
		{"a disabled mapping's function is missing", func(f *doctor.Facts) {
			f.Functions["planner"] = &doctor.Function{Name: "prod-joist-planner", Missing: true, Mapped: true}
		}, "function-missing", "", ""},
		{"no spot role", func(f *doctor.Facts) { f.SpotRole = &no }, "spot-role-missing", "rejects", "create-service-linked-role"},
		{"no node role", func(f *doctor.Facts) { f.NodeRole.Missing = true }, "node-role-missing", "", ""},
		{"node trust", func(f *doctor.Facts) { f.NodeRole.Trust = strings.Replace(nodeTrust, "ec2.", "lambda.", 1) }, "node-role-trust", "never join", ""},
		{"node policies", func(f *doctor.Facts) { f.NodeRole.Policies = f.NodeRole.Policies[:2] }, "node-role-policies", "AmazonSSMManagedInstanceCore, AmazonEC2ContainerRegistryReadOnly", "attach-role-policy"},
		{"no access", func(f *doctor.Facts) { f.Access.Entry = &no }, "node-access", "never join", "create-access-entry"},
		{"no mapping in aws-auth", func(f *doctor.Facts) { f.Access.Mode = "CONFIG_MAP" }, "node-access", "", "iamidentitymapping"},
		{"aws-auth has the role's path", func(f *doctor.Facts) {
			f.Access.Mode, f.NodeRole.ARN = "CONFIG_MAP", "arn:aws:iam::1:role/eks/KarpenterNodeRole-prod"
			f.Access.AuthMap = &f.NodeRole.ARN
		}, "node-access", "", "--arn arn:aws:iam::1:role/KarpenterNodeRole-prod "},
		{"aws-auth of Windows nodes", func(f *doctor.Facts) { f.Access.Mode = "CONFIG_MAP" }, "node-access", "", "--group eks:kube-proxy-windows"},
		{"without EKS no variable is set", func(f *doctor.Facts) { setSelfManaged(f, "JOIST_SERVICE_CIDR", "10.0.0.0/16") }, "control-plane-settings-missing", "CLUSTER_ENDPOINT, CLUSTER_CA_BUNDLE, JOIST_KUBERNETES_VERSION not set", "remove EKS_CONTROL_PLANE"},
		{"without EKS one variable is not set", func(f *doctor.Facts) {
			setSelfManaged(f, "JOIST_SERVICE_CIDR", "10.0.0.0/16", "CLUSTER_ENDPOINT", "https://x", "JOIST_KUBERNETES_VERSION", "1.35")
		}, "control-plane-settings-missing", "and CLUSTER_CA_BUNDLE not set", ""},
		{"without EKS no range of Services is set", func(f *doctor.Facts) {
			setSelfManaged(f, "CLUSTER_ENDPOINT", "https://x", "CLUSTER_CA_BUNDLE", "y", "JOIST_KUBERNETES_VERSION", "1.35")
		}, "control-plane-settings-missing", "Amazon Linux 2023 cannot join", "JOIST_SERVICE_CIDR"},
		{"without EKS another version is set", func(f *doctor.Facts) {
			setSelfManaged(f, "JOIST_SERVICE_CIDR", "10.0.0.0/16", "CLUSTER_ENDPOINT", "https://x", "CLUSTER_CA_BUNDLE", "y", "JOIST_KUBERNETES_VERSION", "1.3")
		}, "control-plane-version", "is 1.3 but the API server is v1.35.2", "JOIST_KUBERNETES_VERSION"},
		{"no subnet", func(f *doctor.Facts) { f.Subnets = []doctor.Tagged{} }, "discovery-tag-missing", "karpenter.sh/discovery=prod", "create-tags"},
		{"no security group", func(f *doctor.Facts) { f.SecurityGroups = []doctor.Tagged{} }, "discovery-tag-missing", "", ""},
		{"two security groups", func(f *doctor.Facts) { f.SecurityGroups = append(f.SecurityGroups, doctor.Tagged{"sg-2", "vpc-1", ""}) }, "discovery-tag-ambiguous", "sg-1, sg-2", "delete-tags"},
		{"two VPCs", func(f *doctor.Facts) { f.Subnets[0].VPC = "vpc-2" }, "discovery-tag-several-vpcs", "several VPCs", ""},
		{"Joist of another cluster", func(f *doctor.Facts) { f.Deployments[0].Environ["CLUSTER_NAME"] = "staging" }, "wrong-cluster", "deployment/joist/joist-watcher name the cluster staging, not prod", "aws eks update-kubeconfig --name prod"},
		{"another cluster by the chart's variable", func(f *doctor.Facts) { f.Deployments[0].Environ["JOIST_CLUSTER_NAME"] = "staging" }, "wrong-cluster", "staging", "--cluster staging"},
		{"a stopped Karpenter of another cluster", func(f *doctor.Facts) {
			f.Deployments[1].Environ = map[string]string{"CLUSTER_NAME": "staging"}
		}, "wrong-cluster", "deployment/kube-system/karpenter", ""},
		{"Karpenter runs", func(f *doctor.Facts) { f.Deployments[1].Replicas = 2 }, "karpenter-running", "", "kubectl scale deployment karpenter -n kube-system --replicas 0"},
		{"Karpenter runs without leader election", func(f *doctor.Facts) {
			f.Deployments[1].Replicas, f.Deployments[1].Environ = 1, map[string]string{"DISABLE_LEADER_ELECTION": "true"}
		}, "karpenter-without-election", "at the same time as Joist", "kubectl scale deployment karpenter -n kube-system --replicas 0"},
		{"Karpenter leads", func(f *doctor.Facts) { f.Lease.Holder = "karpenter-1_x" }, "karpenter-holds-lease", "karpenter-1_x", ""},
		{"one replica", func(f *doctor.Facts) { f.Deployments[0].Replicas = 1 }, "replicas-one", "", "replicas=2"},
		{"no replica", func(f *doctor.Facts) { f.Deployments[0].Replicas = 0 }, "replicas-none", "", ""},
		{"not installed", func(f *doctor.Facts) { f.Deployments = f.Deployments[1:] }, "joist-missing", "", "helm install"},
		{"a missing CRD", func(f *doctor.Facts) { f.Resources = f.Resources[1:] }, "crd-missing", "nodepools", "joist-crd"},
		{"an old CRD", func(f *doctor.Facts) { f.Resources[0] = "karpenter.sh/v1beta1/nodepools" }, "crd-missing", "another version of Karpenter", ""},
		{"a missing optional CRD", func(f *doctor.Facts) { f.Resources = slices.Delete(f.Resources, 3, 4) }, "crd-optional-missing", "", ""},
		{"a trust policy for another ServiceAccount", func(f *doctor.Facts) { f.Accounts[0].Namespace = "kube-system" }, "trust-subject", "trusts system:serviceaccount:joist:joist-watcher", "system:serviceaccount:kube-system:joist-watcher"},
		{"no web identity", func(f *doctor.Facts) { trust := nodeTrust; f.Accounts[0].Trust = &trust }, "trust-subject", "no web identity", ""},
		{"another cluster's provider", func(f *doctor.Facts) { issuer := "oidc.eks/id/2"; f.Issuer = &issuer }, "trust-issuer", "oidc.eks/id/2", "arn:aws:iam::1:oidc-provider/oidc.eks/id/2"},
		{"no ServiceAccount", func(f *doctor.Facts) {
			f.Accounts[1] = doctor.Account{Namespace: "joist", Name: "joist-lifecycle", Service: "lifecycle", Missing: true}
		}, "service-account-missing", "the ServiceAccount does not exist", "kubectl create serviceaccount joist-lifecycle --namespace joist"},
		{"no Pod Identity", func(f *doctor.Facts) { f.Accounts[1].PodIdentity = &doctor.Association{} }, "pod-identity-missing", "no AWS credentials", "create-pod-identity-association --cluster-name prod --namespace joist --service-account joist-lifecycle --role-arn arn:aws:iam::1:role/prod-joist-lifecycle"},
		{"the Pod Identity role of another service", func(f *doctor.Facts) { f.Accounts[1].PodIdentity.Role = "arn:aws:iam::1:role/other" }, "pod-identity-role", "role/other", "--association-id a-1 --role-arn arn:aws:iam::1:role/prod-joist-lifecycle"},
		{"Pod Identity is not trusted", func(f *doctor.Facts) { trust := nodeTrust; f.Accounts[1].Trust = &trust }, "trust-pods", "pods.eks.amazonaws.com", "sts:TagSession"},
		{"no role", func(f *doctor.Facts) { f.Roles[0].Missing = true }, "role-missing", "the launcher", "cdk deploy"},
		{"no role of the scheduler", func(f *doctor.Facts) {
			f.Roles = append(f.Roles, doctor.Role{Service: topology.Scheduler, Name: "prod-joist-scheduler", Missing: true})
		}, "role-missing", "no ticks are sent", "cdk deploy"},
		{"a missing permission", func(f *doctor.Facts) { f.Roles[0].Denied = []doctor.DeniedAction{{"ec2:CreateFleet", "r", false}} }, "role-permissions-missing", "ec2:CreateFleet on r: the launcher", "cdk deploy of the cluster's stack; then run joist doctor --cluster prod again"},
		{"an explicit deny", func(f *doctor.Facts) { f.Roles[0].Denied = []doctor.DeniedAction{{"ec2:CreateFleet", "r", true}} }, "role-permissions-missing", "has a Deny statement", "aws iam get-role --role-name prod-joist-launcher shows the boundary, aws iam list-attached-role-policies and list-role-policies show the policies; then run joist doctor --cluster prod again"},
		{"many missing permissions", func(f *doctor.Facts) { f.Roles[0].Denied = make([]doctor.DeniedAction, 5) }, "role-permissions-missing", "and 2 more permissions", ""},
		{"no instance profile", func(f *doctor.Facts) { f.Profiles[0].Missing = true }, "instance-profile-missing", "EC2NodeClass default", "create-instance-profile --instance-profile-name nodes && aws iam add-role-to-instance-profile"},
		{"an empty instance profile", func(f *doctor.Facts) { f.Profiles[0].Role = "" }, "instance-profile-role", "no role", "add-role-to-instance-profile --instance-profile-name nodes --role-name KarpenterNodeRole-prod"},
		{"another role in the instance profile", func(f *doctor.Facts) { f.Profiles[0].Role = "x" }, "instance-profile-role", "the role x", "remove-role-from-instance-profile --instance-profile-name nodes --role-name x"},
		{"no version", func(f *doctor.Facts) { f.Deployments[0].Images[0] = "ghcr.io/x/joist-watcher:${KARPENTER_VERSION}" }, "variable-unset", "has no version", "KARPENTER_VERSION"},
		{"an empty version", func(f *doctor.Facts) { f.Deployments[0].Images[0] = "ghcr.io/x/joist-watcher:" }, "variable-unset", "", ""},
		{"a variable of a pod", func(f *doctor.Facts) { f.Deployments[0].Environ["CLUSTER_NAME"] = "${CLUSTER_NAME}" }, "variable-unset", "was not replaced", ""},
		{"a variable of the shell", func(f *doctor.Facts) { f.Environ["AWS_ACCOUNT_ID"] = "" }, "variable-unset", "", "export AWS_ACCOUNT_ID"},
		{"an old snapshot", func(f *doctor.Facts) { at := now.Add(-2 * time.Hour); f.Snapshot = &at }, "snapshot-stale", "2h0m0s old", ""},
		{"no snapshot", func(f *doctor.Facts) { f.Snapshot = &time.Time{} }, "snapshot-stale", "no document exists", ""},
		{"an old catalogue", func(f *doctor.Facts) { at := now.Add(-25 * time.Hour); f.Catalogue = &at }, "catalogue-stale", "", ""},
		{"the clock", func(f *doctor.Facts) { skew := -2 * time.Minute; f.Skew = &skew }, "clock-skew", "2m0s", "NTP"},
		{"no helm", func(f *doctor.Facts) { f.Tools[0].Version = "" }, "tool-missing", "", "install helm"},
		{"an old helm", func(f *doctor.Facts) { f.Tools[0].Version = "v3.8.2" }, "tool-old", "v3.8.2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := soundFacts(t)
			test.edit(&f)
			found := doctor.Examine(f)
			if len(found) != 1 || found[0].Check != test.check {
				t.Fatalf("found %+v, want one %s", found, test.check)
			}
			if one := found[0]; !strings.Contains(one.Message, test.says) || !strings.Contains(one.Fix, test.fix) || one.Fix == "" || one.Subject == "" {
				t.Errorf("%+v lacks %q or %q", one, test.says, test.fix)
			}
		})
	}
}

// TestAdoptedSetUps: what the stack does not change in an existing set-up, or what doctor cannot know, is a
// warning with a command that repairs it, or nothing.
func TestAdoptedSetUps(t *testing.T) {
	selectByID := func(f *doctor.Facts) {
		f.Discovery = &doctor.DiscoveryUse{}
		f.Subnets, f.SecurityGroups = []doctor.Tagged{}, []doctor.Tagged{{"sg-1", "vpc-1", ""}, {"sg-2", "vpc-2", ""}}
	}
	for _, test := range []struct {
		name   string
		edit   func(f *doctor.Facts)
		checks []string
		fix    string
	}{
		{
			"an existing queue without a redrive policy", func(f *doctor.Facts) { f.Queues["prod"].DeadARN, f.Queues["prod"].MaxReceives = "", 0 }, []string{"redrive-missing"},
			`--queue-name prod --query QueueUrl --output text)" --attributes '{"RedrivePolicy":"{\"deadLetterTargetArn\":\"` + queueARN("prod-joist-interruption-dead") + `\",\"maxReceiveCount\":\"100\"}"}'`,
		},
		{"an existing queue with a DLQ of its own", func(f *doctor.Facts) { f.Queues["prod"].DeadARN = queueARN("other") }, []string{"redrive-wrong-dlq"}, "aws sqs set-queue-attributes"},
		{"a node role without AmazonSSMManagedInstanceCore", func(f *doctor.Facts) { f.NodeRole.Policies = f.NodeRole.Policies[:3] }, []string{"node-role-policies"}, "unless another policy"},
		{"a CNI plugin with a role of its own", func(f *doctor.Facts) { f.NodeRole.Policies = slices.Delete(f.NodeRole.Policies, 1, 2) }, []string{"node-role-policies"}, ""},
		{"EC2NodeClasses that select by ID", selectByID, nil, ""},
		{"no EC2NodeClass yet, and no tag", func(f *doctor.Facts) { f.Discovery, f.Subnets = nil, []doctor.Tagged{} }, []string{"discovery-tag-missing"}, "create-tags"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := soundFacts(t)
			test.edit(&f)
			var checks []string
			for _, found := range doctor.Examine(f) {
				checks = append(checks, found.Check)
				if found.Severity != doctor.Warning || !strings.Contains(found.Fix, test.fix) {
					t.Errorf("%+v", found)
				}
			}
			if !slices.Equal(checks, test.checks) {
				t.Errorf("found %v, want %v", checks, test.checks)
			}
		})
	}
	f := soundFacts(t)
	f.Queues["prod-joist-planner"].DeadARN, f.Subnets = "", []doctor.Tagged{}
	if found := doctor.Examine(f); len(found) != 2 || found[0].Severity != doctor.Problem || found[1].Severity != doctor.Problem {
		t.Errorf("a queue of the stack, and a class that selects by a missing tag: %+v", found)
	}
}

// setSelfManaged changes the facts to those of a cluster whose control plane EKS does not run.
// variables are names and values of the catalog's environment. Access entries and EKS's
// policies are then not checked.
func setSelfManaged(f *doctor.Facts, variables ...string) {
	set := map[string]string{"EKS_CONTROL_PLANE": "false"}
	for i := 0; i < len(variables); i += 2 {
		set[variables[i]] = variables[i+1]
	}
	f.SelfManaged, f.Kubernetes = &doctor.SelfManaged{Function: "c", Variables: set}, "v1.35.2"
	f.NodeRole.Policies, f.Access, f.Issuer, f.Accounts[1].PodIdentity = nil, nil, nil, nil
}

// TestSelfManaged: a catalog with all variables, and one that was not read, give no finding.
func TestSelfManaged(t *testing.T) {
	f := soundFacts(t)
	setSelfManaged(&f, "JOIST_SERVICE_CIDR", "10.0.0.0/16", "CLUSTER_ENDPOINT", "https://x", "CLUSTER_CA_BUNDLE", "y", "JOIST_KUBERNETES_VERSION", "1.35")
	if found := doctor.Examine(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	f.SelfManaged = &doctor.SelfManaged{}
	if found := doctor.Examine(f); len(found) > 0 {
		t.Errorf("a catalog that was not read: %+v", found)
	}
}

// TestKarpenterRulesAreAccepted: rules with other names, such as those of Karpenter's stack,
// deliver the events as well.
func TestKarpenterRulesAreAccepted(t *testing.T) {
	f := soundFacts(t)
	f.Rules["prod"] = nil
	for i, r := range event.NoticeRules {
		f.Rules["prod"] = append(f.Rules["prod"], doctor.Rule{Name: fmt.Sprintf("Karpenter-prod-%d", i), Bus: "default", Pattern: r.Pattern, Enabled: true, DeadARN: "x"})
	}
	if found := doctor.Examine(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// TestMissingFactsGiveNoFinding: a check with incomplete facts gives no finding.
func TestMissingFactsGiveNoFinding(t *testing.T) {
	no := false
	f := soundFacts(t)
	f.Access = &doctor.Access{Mode: "API_AND_CONFIG_MAP", Entry: &no} // aws-auth was not read
	f.Accounts[0].Trust, f.Accounts[1].PodIdentity = nil, nil
	f.Issuer = nil
	f.Profiles[0].Role, f.NodeRole = "x", nil
	f.Functions = nil
	f.Queues["prod"].Visibility = time.Second // services that poll set the timeout in each receive
	if found := doctor.Examine(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// The node role's ARN is IAM's, with its path. Without it, the role is assumed to have none.
func TestNodeRoleARN(t *testing.T) {
	f := soundFacts(t)
	f.NodeRole.ARN = "arn:aws:iam::1:role/eks/nodes"
	if got := f.NodeRoleARN("nodes"); got != f.NodeRole.ARN {
		t.Errorf("of a role that was read: %s", got)
	}
	for _, unread := range []*doctor.NodeRole{nil, {Name: "nodes", Missing: true}} {
		f.NodeRole = unread
		if got := f.NodeRoleARN("nodes"); got != "arn:aws:iam::1:role/nodes" {
			t.Errorf("of %+v: %s", unread, got)
		}
	}
}

// TestProblemsComeFirst: the order of findings is fixed.
func TestProblemsComeFirst(t *testing.T) {
	f := soundFacts(t)
	f.Tools[0].Version = ""
	f.Queues["prod"].Policy, f.Rules["prod"] = "", nil
	var got []string
	for _, one := range doctor.Examine(f) {
		got = append(got, string(one.Severity)+" "+one.Check)
	}
	if want := []string{"problem queue-policy-missing", "problem rules-missing", "warning tool-missing"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
