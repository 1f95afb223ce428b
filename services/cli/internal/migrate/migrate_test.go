package migrate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/migrate"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const authority = "Y2EK"

// karpentersCluster returns a cluster of Karpenter 1.15 with two nodes and with Joist installed next to it.
func karpentersCluster(t *testing.T) migrate.MigrationFacts {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	environ := map[string]string{"LEADER_ELECTION_NAMESPACE": "kube-system", "LEADER_ELECTION_NAME": lease.KarpenterName}
	f := migrate.MigrationFacts{
		Installation: doctor.Facts{
			Plan: plan, Now: now,
			Lease: &doctor.Lease{Namespace: "kube-system", Holder: "karpenter-7f_1", Renewed: now},
			Deployments: []doctor.Deployment{
				{Namespace: "joist", Name: "joist-watcher", Component: "watcher", Replicas: 2, Environ: environ},
				{Namespace: "joist", Name: "joist-lifecycle", Component: "lifecycle", Replicas: 2, Environ: environ},
				{
					Namespace: "kube-system", Name: "karpenter", Karpenter: true, Replicas: 2, Images: []string{"public.ecr.aws/karpenter/controller:1.15.1@sha256:abc"},
					Environ: map[string]string{"INTERRUPTION_QUEUE": "Karpenter-prod"},
				},
			},
		},
		Plan:   &migrate.LivePlan{NodePools: []migrate.PoolPlan{{Name: "default", Unchanged: true, NodesNow: 2, NodesAfter: 2}}},
		Unread: map[migrate.Fact]doctor.Skipped{}, Namespace: "joist", Now: now, Region: "eu-west-1", CertificateAuthority: authority,
		CRDs: []migrate.CRD{
			{Name: "nodepools.karpenter.sh", Versions: []string{"v1"}, Stored: []string{"v1"}},
			{Name: "nodeclaims.karpenter.sh", Versions: []string{"v1"}, Stored: []string{"v1"}},
			{Name: "ec2nodeclasses.karpenter.k8s.aws", Versions: []string{"v1"}, Stored: []string{"v1"}},
		},
		Pools: []karpenter.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}, Classes: []karpenter.EC2NodeClass{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
	}
	f.Pools[0].Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	f.Classes[0].Spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}}
	f.Classes[0].Spec.Role = "nodes"
	hashes := map[string]string{
		karpenter.NodePoolHashAnnotationKey: must(f.Pools[0].Hash()), karpenter.NodePoolHashVersionAnnotationKey: karpenter.NodePoolHashVersion,
		karpenter.EC2NodeClassHashAnnotationKey: must(f.Classes[0].Hash(authority)), karpenter.EC2NodeClassHashVersionAnnotationKey: karpenter.EC2NodeClassHashVersion,
		karpenter.InstanceTaggedAnnotationKey: "true", karpenter.ClusterNameTaggedCompatibilityAnnotationKey: "true",
	}
	f.Pools[0].Annotations, f.Classes[0].Annotations = maps.Clone(hashes), maps.Clone(hashes)
	for _, name := range []string{"default-a", "default-b"} {
		claim := karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{karpenter.NodePoolLabelKey: "default"}, Annotations: maps.Clone(hashes),
			Finalizers: []string{karpenter.TerminationFinalizer}, CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
		}}
		claim.Status.ProviderID = "aws:///eu-west-1a/i-" + name
		claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue}, now)
		f.Claims = append(f.Claims, claim)
		f.Nodes = append(f.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabelKey: "default"}}})
	}
	return f
}

func must(hash string, err error) string {
	if err != nil {
		panic(err)
	}
	return hash
}

func TestCheck(t *testing.T) {
	deleted := metav1.NewTime(now)
	for _, test := range []struct {
		name   string
		change func(f *migrate.MigrationFacts)
		step   string
		state  migrate.StepState
		// says is a part of the detail or of the fix.
		says string
	}{
		{"the cluster of the kubeconfig", func(*migrate.MigrationFacts) {}, "cluster", migrate.Done, "prod"},
		{"another cluster", setCluster("staging"), "cluster", migrate.Blocked, "name the cluster staging, not prod"},
		{"Karpenter of another cluster must not be stopped", setCluster("staging"), "karpenter-stopped", migrate.Blocked, "first complete: cluster"},
		{"the version was compared", func(*migrate.MigrationFacts) {}, "karpenter-version", migrate.Done, "Karpenter 1.15.1"},
		{"an older version", image("controller:v1.3.2"), "karpenter-version", migrate.Done, "older"},
		{"a version before 1.0", image("controller:0.37.0"), "karpenter-version", migrate.Blocked, "upgrade Karpenter"},
		{"a newer version", image("controller:1.16.0"), "karpenter-version", migrate.Ready, "newer than 1.15"},
		{"an image without a version", image("controller@sha256:abc"), "karpenter-version", migrate.Blocked, "unknown"},
		{"a mirrored image", image("platform/karpenter-controller:1.15.1"), "karpenter-version", migrate.Done, "Karpenter 1.15.1"},
		{"a mirrored image of any name", image("autoscaler:1.15.1"), "karpenter-version", migrate.Done, "Karpenter 1.15.1"},
		{"no Karpenter", removeKarpenter, "karpenter-version", migrate.Done, "no Deployment"},

		{"current CRDs", func(*migrate.MigrationFacts) {}, "crds", migrate.Done, "served and stored as v1"},
		{"a missing CRD", func(f *migrate.MigrationFacts) { f.CRDs = f.CRDs[1:] }, "crds", migrate.Blocked, "joist-crd"},
		{"a CRD without v1", func(f *migrate.MigrationFacts) { f.CRDs[0].Versions = []string{"v1beta1"} }, "crds", migrate.Blocked, "does not serve"},
		{"objects stored as v1beta1", func(f *migrate.MigrationFacts) { f.CRDs[1].Stored = []string{"v1beta1", "v1"} }, "crds", migrate.Blocked, "kubectl get nodeclaims.karpenter.sh -o json | kubectl replace"},
		{"a definition that lacks a field", func(f *migrate.MigrationFacts) { f.CRDs[2].Missing = []string{"spec.networkInterfaces"} }, "crds", migrate.Ready, "spec.networkInterfaces"},
		{"kinds of v1alpha5", func(f *migrate.MigrationFacts) {
			f.CRDs = append(f.CRDs, migrate.CRD{Name: "provisioners.karpenter.sh"})
		}, "crds", migrate.Ready, "kubectl delete crd provisioners.karpenter.sh"},

		{"no webhook", func(*migrate.MigrationFacts) {}, "conversion-webhooks", migrate.Done, ""},
		{"a conversion webhook", func(f *migrate.MigrationFacts) { f.CRDs[0].WebhookService = "kube-system/karpenter" }, "conversion-webhooks", migrate.Blocked, "kubectl patch crd nodepools.karpenter.sh"},
		{"a validating webhook", func(f *migrate.MigrationFacts) {
			f.Webhooks = []migrate.Webhook{{Kind: "validatingwebhookconfigurations", Name: "validation.webhook.karpenter.sh", Service: "kube-system/karpenter"}}
		}, "conversion-webhooks", migrate.Blocked, "kubectl delete validatingwebhookconfigurations validation.webhook.karpenter.sh"},

		{"accepted manifests", func(*migrate.MigrationFacts) {}, "manifests", migrate.Done, "accepts 1 NodePool and 1 EC2NodeClass"},
		{"a refused manifest", func(f *migrate.MigrationFacts) {
			f.Refused = []migrate.ManifestProblem{{Object: "nodepool/default", Reason: "spec.limit: unknown field"}}
		}, "manifests", migrate.Blocked, "spec.limit"},
		{"a warning", func(f *migrate.MigrationFacts) {
			f.Refused = []migrate.ManifestProblem{{Object: "nodepool/default", Reason: "no limits", Warning: true}}
		}, "manifests", migrate.Done, "no limits"},
		{"no NodePool", func(f *migrate.MigrationFacts) { f.Pools = nil }, "manifests", migrate.Ready, "no NodePool"},

		{"one NodePool", func(*migrate.MigrationFacts) {}, "differences", migrate.Done, "by price"},
		{"NodePools of equal weight", func(f *migrate.MigrationFacts) {
			f.Pools = append(f.Pools, karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "spot"}})
		}, "differences", migrate.Done, "equal weight (default, spot)"},
		{"a large NodePool", func(f *migrate.MigrationFacts) {
			f.Claims = slices.Repeat(f.Claims, 3)
		}, "differences", migrate.Done, "(default) waits for approval"},
		{"equal settings", func(f *migrate.MigrationFacts) {
			f.Installation.Deployments[2].Environ["FEATURE_GATES"] = "NodeRepair=false,ReservedCapacity=true"
			f.Installation.Deployments[2].Environ["BATCH_MAX_DURATION"] = "10s"
		}, "settings", migrate.Done, "gates"},
		{"another gate", func(f *migrate.MigrationFacts) {
			f.Installation.Deployments[2].Environ["FEATURE_GATES"] = "NodeRepair=true"
		}, "settings", migrate.Ready, "FEATURE_GATES is NodeRepair,ReservedCapacity in Karpenter and ReservedCapacity in Joist"},
		{"another policy", func(f *migrate.MigrationFacts) {
			f.Installation.Deployments[1].Environ["PREFERENCE_POLICY"] = "Ignore"
		}, "settings", migrate.Ready, "PREFERENCE_POLICY is Respect in Karpenter and Ignore in Joist"},
		{"settings before Joist is installed", func(f *migrate.MigrationFacts) {
			removeJoist(f)
			f.Installation.Deployments[0].Environ["RESERVED_ENIS"] = "1"
		}, "settings", migrate.Ready, "values.yaml"},

		{"nodes without drift", func(*migrate.MigrationFacts) {}, "nodes", migrate.Done, "2 NodeClaims adopted"},
		{"older hashes", olderHashes, "nodes", migrate.Done, "2 with new hashes"},
		{"another certificate authority", func(f *migrate.MigrationFacts) { f.CertificateAuthority = "b3RoZXIK" }, "nodes", migrate.Blocked, "CLUSTER_CA_BUNDLE"},
		{"the authority of EKS is not read", func(*migrate.MigrationFacts) {}, "nodes", migrate.Done, "eks:DescribeCluster was not read"},
		{"hashes that Joist wrote with the authority of EKS", func(f *migrate.MigrationFacts) {
			f.CertificateAuthority, f.Installation.Lease.Holder = "b3RoZXIK", lease.KarpenterHolder
		}, "nodes", migrate.Done, "2 NodeClaims adopted"},
		{"a changed template", func(f *migrate.MigrationFacts) { f.Pools[0].Spec.Template.Labels = map[string]string{"team": "a"} }, "nodes", migrate.Blocked, "would drift"},
		{"drift that Karpenter has found", func(f *migrate.MigrationFacts) {
			f.Pools[0].Spec.Template.Labels = map[string]string{"team": "a"}
			for i := range f.Claims {
				c := &f.Claims[i]
				c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: drift.NodePoolDrifted}, now)
			}
		}, "nodes", migrate.Done, "would: 2"},
		{"another provider", func(f *migrate.MigrationFacts) { f.Pools[0].Spec.Template.Spec.NodeClassRef.Kind = "KWOKNodeClass" }, "nodes", migrate.Done, "other providers"},

		{"finalizers", func(*migrate.MigrationFacts) {}, "finalizers", migrate.Done, "2 NodeClaims with"},
		{"a missing finalizer", func(f *migrate.MigrationFacts) { f.Claims[0].Finalizers = nil }, "finalizers", migrate.Done, "adds it to 1"},
		{"a node that is being removed", func(f *migrate.MigrationFacts) { f.Claims[0].DeletionTimestamp = &deleted }, "finalizers", migrate.Done, "completes the removal of 1"},
		{"a launch in flight", func(f *migrate.MigrationFacts) { f.Claims[0].Status.ProviderID = "" }, "instance-tags", migrate.Ready, "wait"},
		{"an instance without tags", func(f *migrate.MigrationFacts) {
			delete(f.Claims[0].Annotations, karpenter.InstanceTaggedAnnotationKey)
		}, "instance-tags", migrate.Done, "lifecycle adds them"},
		{"managed profiles", func(*migrate.MigrationFacts) {}, "instance-profiles", migrate.Done, "no instance has it"},
		{"a missing profile", findingOf("instance-profile-missing"), "instance-profiles", migrate.Blocked, "repair it"},
		{"profiles of Karpenter", profilesOf("/karpenter/eu-west-1/prod/uid/", "owned"), "instance-profiles", migrate.Done, "1 of 1 profile in IAM adopted"},
		{"a profile of an older Karpenter", profilesOf("/", "owned"), "instance-profiles", migrate.Done, "not adopted: prod_1 (its path is / instead of /karpenter/eu-west-1/prod/uid/"},
		{"a profile of another cluster", profilesOf("/karpenter/eu-west-1/prod/uid/", ""), "instance-profiles", migrate.Done, "does not have the tag kubernetes.io/cluster/prod=owned"},
		{"a profile of a deleted class", func(f *migrate.MigrationFacts) {
			profilesOf("/karpenter/eu-west-1/prod/former/", "owned")(f)
			f.Classes[0].Status.InstanceProfile = ""
		}, "instance-profiles", migrate.Done, "aws iam delete-instance-profile --instance-profile-name prod_1"},
		{"profiles that may not be listed", unread(migrate.InstanceProfiles), "instance-profiles", migrate.Done, "were not listed (no access)"},
		{"no plan of today's pods", unread(migrate.Today), "plan", migrate.Unknown, "no access"},
		{"no plan of today's pods prevents nothing", unread(migrate.Today), "karpenter-stopped", migrate.Ready, "--replicas 0"},
		{"the same nodes", func(*migrate.MigrationFacts) {}, "plan", migrate.Done, "would keep the nodes of all NodePools (1 NodePool, 2 nodes)"},
		{"own profiles", func(f *migrate.MigrationFacts) { f.Classes[0].Spec.InstanceProfile = new(string) }, "instance-profiles", migrate.Done, "unchanged"},

		{"resources in AWS", func(*migrate.MigrationFacts) {}, "aws-resources", migrate.Done, ""},
		{"a missing role", findingOf("role-missing"), "aws-resources", migrate.Blocked, "repair it"},
		{"a node role without a policy of the guides", findingOf("node-role-policies"), "aws-resources", migrate.Done, ""},
		{"denied reads", func(f *migrate.MigrationFacts) {
			f.Skipped = []doctor.Skipped{{Subject: "the role x", Reason: "denied iam:GetRole", Fix: "grant iam:GetRole"}}
		}, "aws-resources", migrate.Unknown, "grant iam:GetRole"},
		{"no access to AWS", unread(migrate.AWS), "aws-resources", migrate.Unknown, "no access"},
		{"two queues", func(*migrate.MigrationFacts) {}, "interruption-queue", migrate.Done, "each gets all events"},
		{"one queue", func(f *migrate.MigrationFacts) { f.Installation.Deployments[2].Environ["INTERRUPTION_QUEUE"] = "prod" }, "interruption-queue", migrate.Done, "the same queue prod"},
		{"no queue of Karpenter", func(f *migrate.MigrationFacts) { f.Installation.Deployments[2].Environ = nil }, "interruption-queue", migrate.Done, "handles no interruptions"},

		{"Joist installed", func(*migrate.MigrationFacts) {}, "joist-installed", migrate.Done, ""},
		{"Joist not installed", removeJoist, "joist-installed", migrate.Ready, "leaderElection.namespace=kube-system"},
		{"Joist without replicas", func(f *migrate.MigrationFacts) {
			f.Installation.Deployments[0].Replicas, f.Installation.Deployments[1].Replicas = 0, 0
		}, "joist-installed", migrate.Ready, "kubectl scale deployment -n joist --replicas 2 joist-watcher joist-lifecycle"},
		{"the same Lease", func(*migrate.MigrationFacts) {}, "lease-namespace", migrate.Done, "one of them acts"},
		{"Karpenter in another namespace", func(f *migrate.MigrationFacts) { f.Installation.Deployments[2].Namespace = "karpenter" }, "lease-namespace", migrate.Blocked, "both would act"},
		{"another Lease", func(f *migrate.MigrationFacts) {
			f.Installation.Deployments[0].Environ["LEADER_ELECTION_NAME"] = "ours"
		}, "lease-namespace", migrate.Blocked, "both would act"},
		{"Karpenter without leader election next to Joist", disableElection, "lease-namespace", migrate.Blocked, "scale Joist to 0 replicas now, then turn Karpenter's leader election on"},
		{"Karpenter without leader election cannot stop yet", disableElection, "karpenter-stopped", migrate.Blocked, "lease-namespace"},
		{"Karpenter without leader election acts", disableElection, "joist-active", migrate.Ready, "acts without the Lease"},
		{"Karpenter without leader election, before Joist is installed", func(f *migrate.MigrationFacts) {
			disableElection(f)
			removeJoist(f)
		}, "lease-namespace", migrate.Blocked, "kubectl set env deployment/karpenter -n kube-system DISABLE_LEADER_ELECTION-"},
		{"Joist must not be installed next to a Karpenter without leader election", func(f *migrate.MigrationFacts) {
			disableElection(f)
			removeJoist(f)
		}, "joist-installed", migrate.Blocked, "do not install Joist yet"},
		{"Karpenter without leader election and Joist both act", func(f *migrate.MigrationFacts) {
			disableElection(f)
			f.Installation.Lease = &doctor.Lease{Namespace: "kube-system", Holder: lease.KarpenterHolder, Renewed: now}
		}, "joist-active", migrate.Blocked, "both act"},
		{"a stopped Karpenter without leader election", func(f *migrate.MigrationFacts) {
			disableElection(f)
			f.Installation.Deployments[2].Replicas = 0
		}, "lease-namespace", migrate.Done, "one of them acts"},
		{"no Joist and no Lease", removeJoist, "lease-namespace", migrate.Ready, "leaderElection.namespace"},

		{"Karpenter can stop", func(*migrate.MigrationFacts) {}, "karpenter-stopped", migrate.Ready, "kubectl scale deployment karpenter -n kube-system --replicas 0"},
		{"Karpenter cannot stop yet", func(f *migrate.MigrationFacts) { f.CRDs = nil }, "karpenter-stopped", migrate.Blocked, "crds"},
		{"Karpenter cannot stop without Joist", removeJoist, "karpenter-stopped", migrate.Blocked, "joist-installed"},
		{"an unknown step", unread(migrate.AWS), "karpenter-stopped", migrate.Blocked, "aws-resources"},
		{"Karpenter has stopped", func(f *migrate.MigrationFacts) { f.Installation.Deployments[2].Replicas = 0 }, "karpenter-stopped", migrate.Done, "keep its Deployment"},
		{"one of two Deployments of Karpenter has stopped", func(f *migrate.MigrationFacts) {
			other := f.Installation.Deployments[2]
			f.Installation.Deployments[2].Replicas = 0
			other.Name = "karpenter-green"
			f.Installation.Deployments = append(f.Installation.Deployments, other)
		}, "karpenter-stopped", migrate.Ready, "kubectl scale deployment karpenter-green"},
		{"Karpenter acts", func(*migrate.MigrationFacts) {}, "joist-active", migrate.Ready, "Karpenter acts"},
		{"Joist acts", func(f *migrate.MigrationFacts) { f.Installation.Lease.Holder = lease.KarpenterHolder }, "joist-active", migrate.Done, ""},
		{"an old Lease", func(f *migrate.MigrationFacts) { f.Installation.Lease.Renewed = now.Add(-time.Hour) }, "joist-active", migrate.Ready, "neither"},
		{"no right to read the Lease", unread(migrate.Leases), "joist-active", migrate.Unknown, "no access"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := karpentersCluster(t)
			test.change(&f)
			requireStep(t, migrate.Check(f).Takeover, test.step, test.state, test.says)
		})
	}
}

// profilesOf adds the profile of the EC2NodeClass, with a path and the value of the cluster's tag.
func profilesOf(path, owned string) func(*migrate.MigrationFacts) {
	return func(f *migrate.MigrationFacts) {
		f.Classes[0].UID, f.Classes[0].Status.InstanceProfile = "uid", "prod_1"
		f.Profiles = []cloud.Profile{{Name: "prod_1", Path: path, Role: "nodes", Tags: map[string]string{"kubernetes.io/cluster/prod": owned}}}
	}
}

// TestAssumptions: what EKS and IAM were not asked is assumed, and named.
func TestAssumptions(t *testing.T) {
	f := karpentersCluster(t)
	profilesOf("/", "owned")(&f)
	if got := strings.Join(migrate.Check(f).Assumptions, "; "); !strings.Contains(got, "certificate authority") || !strings.Contains(got, "OIDC issuer") || strings.Contains(got, "prod_1") {
		t.Errorf("with IAM and without EKS: %s", got)
	}
	f.Installation.CertificateAuthority, f.Installation.Issuer, f.Installation.Access = authority, new("issuer"), &doctor.Access{Mode: "API"}
	if got := migrate.Check(f).Assumptions; len(got) > 0 {
		t.Errorf("with EKS and IAM: %v", got)
	}
	unread(migrate.InstanceProfiles)(&f)
	if got := strings.Join(migrate.Check(f).Assumptions, "; "); !strings.Contains(got, "prod_1 of EC2NodeClass default") {
		t.Errorf("without IAM: %s", got)
	}
}

// TestActiveWithoutElection: a Karpenter without leader election acts, also if another holds the Lease.
func TestActiveWithoutElection(t *testing.T) {
	f := karpentersCluster(t)
	disableElection(&f)
	if got := migrate.Check(f).Active; got != migrate.Karpenter {
		t.Errorf("without a holder of the Lease: %s", got)
	}
	f.Installation.Lease = &doctor.Lease{Namespace: "kube-system", Holder: lease.KarpenterHolder, Renewed: now}
	if got := migrate.Check(f).Active; got != migrate.Both {
		t.Errorf("if Joist holds the Lease: %s", got)
	}
}

func TestWayBack(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(f *migrate.MigrationFacts)
		step   string
		state  migrate.StepState
		says   string
	}{
		{"another cluster", setCluster("staging"), "cluster", migrate.Blocked, "--cluster staging"},
		{"Karpenter runs", func(*migrate.MigrationFacts) {}, "karpenter-deployment", migrate.Done, "2 replicas"},
		{"Karpenter can be scaled up", func(f *migrate.MigrationFacts) { f.Installation.Deployments[2].Replicas = 0 }, "karpenter-deployment", migrate.Ready, "kubectl scale deployment karpenter"},
		{"Karpenter was removed", removeKarpenter, "karpenter-deployment", migrate.Blocked, "--skip-crds"},
		{"Karpenter without leader election must not be scaled up", func(f *migrate.MigrationFacts) {
			disableElection(f)
			f.Installation.Deployments[2].Replicas = 0
		}, "karpenter-deployment", migrate.Blocked, "leader election is turned off"},
		{"a launch in flight", func(f *migrate.MigrationFacts) { f.Claims[0].Status.ProviderID = "" }, "launches", migrate.Ready, "wait"},
		{"no launch", func(*migrate.MigrationFacts) {}, "launches", migrate.Done, ""},
		{"a disruption", func(f *migrate.MigrationFacts) { f.Claims[0].Annotations["joist.sh/proposal"] = "{}" }, "disruptions", migrate.Done, "replacing 1 node:"},
		{"a finalizer of Joist", func(f *migrate.MigrationFacts) { f.Pools[0].Finalizers = []string{"joist.sh/gate"} }, "deletion-approval", migrate.Ready, "poolGate=off"},
		{"Joist runs", func(*migrate.MigrationFacts) {}, "stop-joist", migrate.Ready, "kubectl scale deployment joist-watcher joist-lifecycle -n joist --replicas 0"},
		{"Joist does not run", removeJoist, "stop-joist", migrate.Done, ""},
		{"two queues", func(*migrate.MigrationFacts) {}, "interruption-queue", migrate.Done, ""},
		{"one queue", func(f *migrate.MigrationFacts) { f.Installation.Deployments[2].Environ["INTERRUPTION_QUEUE"] = "prod" }, "interruption-queue", migrate.Ready, "prod-joist-interruption"},
		{"current hashes", func(*migrate.MigrationFacts) {}, "hashes", migrate.Done, "v3"},
		{"a hash that is not written yet", func(f *migrate.MigrationFacts) { f.Pools[0].Annotations[karpenter.NodePoolHashAnnotationKey] = "1" }, "hashes", migrate.Ready, "wait"},
		{"annotations", func(f *migrate.MigrationFacts) { f.Claims[0].Annotations["joist.sh/intent"] = "x" }, "remains", migrate.Done, "annotations"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := karpentersCluster(t)
			test.change(&f)
			requireStep(t, migrate.Check(f).Return, test.step, test.state, test.says)
		})
	}
}

// TestPools: the NodePools list how many NodeClaims are adopted, which get hashes, and which drift.
func TestPools(t *testing.T) {
	f := karpentersCluster(t)
	f.Claims[1].Annotations[karpenter.NodePoolHashAnnotationKey] = "1"
	pool := migrate.Check(f).NodePools[0]
	want := []migrate.Drifted{{NodeClaim: "default-b", Reason: drift.NodePoolDrifted}}
	if pool.NodeClaims != 2 || pool.Nodes != 2 || pool.Rehashed != 0 || !slices.Equal(pool.Drifted, want) {
		t.Errorf("%+v", pool)
	}
}

// TestCompleted: a takeover is complete when Joist acts and every step is done.
func TestCompleted(t *testing.T) {
	f := karpentersCluster(t)
	if migrate.Check(f).Completed() {
		t.Error("the takeover is complete although Karpenter runs")
	}
	f.Installation.Deployments[2].Replicas, f.Installation.Lease.Holder = 0, lease.KarpenterHolder
	if r := migrate.Check(f); !r.Completed() || r.Active != migrate.Joist {
		t.Errorf("the takeover is not complete: %+v", r.Takeover)
	}
}

func requireStep(t *testing.T, steps []migrate.MigrationStep, name string, state migrate.StepState, says string) {
	t.Helper()
	i := slices.IndexFunc(steps, func(s migrate.MigrationStep) bool { return s.Step == name })
	if i < 0 {
		t.Fatalf("no step %s", name)
	}
	s := steps[i]
	if s.State != state || !strings.Contains(s.Detail+" "+s.Fix, says) {
		t.Errorf("%s is %s, want %s with %q: %s; fix: %s", name, s.State, state, says, s.Detail, s.Fix)
	}
	if (s.Fix == "") != (s.State == migrate.Done) || s.Detail == "" {
		t.Errorf("%s is %s with the detail %q and the fix %q", name, s.State, s.Detail, s.Fix)
	}
}

func image(name string) func(f *migrate.MigrationFacts) {
	return func(f *migrate.MigrationFacts) {
		f.Installation.Deployments[2].Images = []string{"example.com/" + name}
	}
}

func removeKarpenter(f *migrate.MigrationFacts) {
	f.Installation.Deployments = f.Installation.Deployments[:2]
}

func removeJoist(f *migrate.MigrationFacts) {
	f.Installation.Deployments = f.Installation.Deployments[2:]
}

// setCluster sets the cluster in the settings of all Deployments.
func setCluster(name string) func(f *migrate.MigrationFacts) {
	return func(f *migrate.MigrationFacts) {
		for i := range f.Installation.Deployments {
			f.Installation.Deployments[i].Environ["CLUSTER_NAME"] = name
		}
	}
}

// disableElection turns Karpenter's leader election off, so that no pod holds the Lease.
func disableElection(f *migrate.MigrationFacts) {
	f.Installation.Deployments[2].Environ["DISABLE_LEADER_ELECTION"] = "true"
	f.Installation.Lease = nil
}

func unread(fact migrate.Fact) func(f *migrate.MigrationFacts) {
	return func(f *migrate.MigrationFacts) {
		f.Unread[fact] = doctor.Skipped{Subject: string(fact), Reason: "no access", Fix: "grant it"}
	}
}

func findingOf(check string) func(f *migrate.MigrationFacts) {
	return func(f *migrate.MigrationFacts) {
		f.Findings = []doctor.Finding{{Check: check, Severity: doctor.Problem, Subject: "x/y", Message: "it is missing", Fix: "repair it"}}
	}
}

// olderHashes gives hashes of another version to all objects.
func olderHashes(f *migrate.MigrationFacts) {
	old := func(m map[string]string) {
		m[karpenter.NodePoolHashAnnotationKey], m[karpenter.NodePoolHashVersionAnnotationKey] = "1", "v2"
		m[karpenter.EC2NodeClassHashAnnotationKey], m[karpenter.EC2NodeClassHashVersionAnnotationKey] = "1", "v5"
	}
	old(f.Pools[0].Annotations)
	old(f.Classes[0].Annotations)
	for i := range f.Claims {
		old(f.Claims[i].Annotations)
	}
}
