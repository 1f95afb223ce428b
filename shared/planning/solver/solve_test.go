package solver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// solve plans the batch and checks the result with CheckResult.
func solve(t *testing.T, batch planning.Batch) planning.Result {
	t.Helper()
	cat := planningtest.NewCatalogue()
	result := solver.Solve(batch, cat)
	if err := planningtest.CheckResult(batch, cat, result); err != nil {
		t.Errorf("invalid plan:\n%v", err)
	}
	for _, u := range result.Unplaced {
		if detail := u.Rejections[0].Detail; strings.HasPrefix(detail, "the planner failed") {
			t.Error(detail)
		}
	}
	return result
}

func TestSeed(t *testing.T) {
	result := solve(t, planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "0")))
	if len(result.Unplaced) > 0 || len(result.Nodes) == 0 {
		t.Fatalf("%d nodes, unplaced: %+v", len(result.Nodes), result.Unplaced)
	}
	for _, n := range result.Nodes {
		for _, o := range n.Offerings {
			if !strings.HasPrefix(o.InstanceType, "t4g.") || o.Zone != "ap-northeast-2a" {
				t.Errorf("option %+v does not match the pool", o)
			}
		}
		if n.Offerings[0].CapacityType != karpenter.CapacityTypeSpot {
			t.Errorf("the cheapest option is %+v, want spot", n.Offerings[0])
		}
	}
}

func TestSeedLimits(t *testing.T) {
	result := solve(t, planningtest.NewBatch(planningtest.NewPods("inflate", 40, "1", "0")))
	if len(result.Unplaced) != 1 || result.Unplaced[0].Rejections[0].Rule != planning.RuleLimits {
		t.Fatalf("unplaced = %+v, want one class because of the limits", result.Unplaced)
	}
	if len(result.Nodes) != 5 || len(result.Unplaced[0].Pods) != 25 {
		t.Errorf("%d nodes and %d unplaced pods, want 5 nodes of 4 cpu for 15 pods with a limit of 20", len(result.Nodes), len(result.Unplaced[0].Pods))
	}
}

func TestRightSizes(t *testing.T) {
	result := solve(t, planningtest.WithoutSpot(planningtest.NewBatch(planningtest.NewPods("small", 1, "100m", "100Mi"))))
	if got := result.Nodes[0].Offerings[0].InstanceType; got != "t4g.medium" {
		t.Errorf("one small pod got %s, want the cheapest type that fits", got)
	}
}

// labelRule returns the rules and the detail with which a batch of one class was rejected.
func labelRule(t *testing.T, batch planning.Batch) (rules []string, detail string) {
	t.Helper()
	result := solve(t, batch)
	if len(result.Unplaced) != 1 {
		t.Fatalf("unplaced = %+v, want one class", result.Unplaced)
	}
	for _, r := range result.Unplaced[0].Rejections {
		rules, detail = append(rules, r.Rule), detail+r.Detail
	}
	return rules, detail
}

func TestRejections(t *testing.T) {
	pool := func(b *planning.Batch) *karpenter.NodePool { return &b.Snapshot.NodePools[0] }
	class := func(b *planning.Batch) *karpenter.EC2NodeClass { return &b.Snapshot.NodeClasses[0] }
	for _, tt := range []struct {
		name   string
		edit   func(*planning.Batch)
		rule   string
		detail string
	}{
		{"no NodePool", func(b *planning.Batch) { b.Snapshot.NodePools = nil }, planning.RuleNotReady, "no NodePool"},
		{"pool not ready", func(b *planning.Batch) {
			pool(b).Status.Conditions[0].Status, pool(b).Status.Conditions[0].Message = "False", "broken"
		}, planning.RuleNotReady, "broken"},
		{"pool with unknown readiness", func(b *planning.Batch) {
			pool(b).Status.Conditions[0].Status, pool(b).Status.Conditions[0].Message = "Unknown", "NodeClassReady=Unknown"
		}, planning.RuleNotReady, "NodeClassReady=Unknown"},
		{"pool not reconciled", func(b *planning.Batch) { pool(b).Status.Conditions = nil }, planning.RuleNotReady, "not been reconciled"},
		{"pool of another provider, whose node class has the same name", func(b *planning.Batch) {
			pool(b).Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
		}, planning.RuleNotReady, "another provider"},
		{"class missing", func(b *planning.Batch) { b.Snapshot.NodeClasses = nil }, planning.RuleNotReady, `EC2NodeClass "default" does not exist`},
		{"class not ready", func(b *planning.Batch) {
			class(b).Status.Conditions[0].Status, class(b).Status.Conditions[0].Message = "False", "no group"
		}, planning.RuleNotReady, "no group"},
		{"class not reconciled", func(b *planning.Batch) { class(b).Status.Conditions = nil }, planning.RuleNotReady, "not been reconciled"},
		{"refused launches", func(b *planning.Batch) {
			b.Snapshot.Unavailable = []planning.Unavailable{pauseLaunches(b, 2)}
		}, planning.RuleNotReady, "EC2 refused 2 launches in a row of the NodePool with UnauthorizedOperation. Joist tries again at "},
		{"no subnets", func(b *planning.Batch) { class(b).Status.Subnets = nil }, planning.RuleNotReady, "subnets"},
		{"no subnet in the zone", func(b *planning.Batch) { class(b).Status.Subnets = class(b).Status.Subnets[1:] }, planning.RuleNoOffering, "zones"},
		{"no image for the types", func(b *planning.Batch) { class(b).Status.AMIs = class(b).Status.AMIs[1:] }, planning.RuleNoOffering, "images"},
		{"taint", func(b *planning.Batch) {
			pool(b).Spec.Template.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		}, planning.RuleTaints, "gpu=yes:NoSchedule"},
		{"requirement", func(b *planning.Batch) {
			b.Pending[0].Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		}, planning.RuleRequirements, "kubernetes.io/arch: the pod needs In [amd64], the pool allows In [arm64]"},
		{"custom label that no pool defines", func(b *planning.Batch) {
			b.Pending[0].Spec.NodeSelector = map[string]string{"team": "shop"}
		}, planning.RuleRequirements, "team"},
		{"a hostname", func(b *planning.Batch) {
			b.Pending[0].Spec.NodeSelector = map[string]string{corev1.LabelHostname: "ip-10-0-0-1"}
		}, planning.RuleRequirements, corev1.LabelHostname},
		{"no matching type", func(b *planning.Batch) {
			b.Pending[0].Spec.NodeSelector = map[string]string{karpenter.LabelInstanceSize: "8xlarge"}
		}, planning.RuleNoOffering, "instance-size In [8xlarge]"},
		{"no matching type in a pool of one type", func(b *planning.Batch) {
			pool(b).Spec.Template.Spec.Requirements = append(pool(b).Spec.Template.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{
				Key: corev1.LabelInstanceTypeStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g.medium"},
			})
			b.Pending[0].Spec.NodeSelector = map[string]string{karpenter.LabelInstanceSize: "8xlarge"}
		}, planning.RuleNoOffering, "instance-size In [8xlarge]"},
		{"sold out", func(b *planning.Batch) {
			b.Snapshot.Unavailable = []planning.Unavailable{{Offering: event.Offering{Zone: "ap-northeast-2a"}, Until: planningtest.Now.Add(1)}}
		}, planning.RuleNoOffering, "all 3 instance types of the pool are currently unavailable"},
		{"too large", func(b *planning.Batch) {
			b.Pending[0].Spec.Requests = planningtest.NewRequests("4", "1Gi")
		}, planning.RuleResources, "cpu: the pod needs 4, and the closest type, t4g.xlarge, has"},
		{"unknown resource", func(b *planning.Batch) {
			b.Pending[0].Spec.Requests["example.com/fpga"] = resource.MustParse("1")
		}, planning.RuleResources, "example.com/fpga"},
		{"limit", func(b *planning.Batch) {
			pool(b).Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("1000m")}
		}, planning.RuleLimits, "limits.cpu has 1 left, and t4g."},
		{"limit of nodes", func(b *planning.Batch) {
			pool(b).Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: resource.MustParse("0")}
		}, planning.RuleLimits, "limits.nodes"},
		{"resource claims", func(b *planning.Batch) { b.Pending[0].Spec.ResourceClaims = 1 }, planning.RulePod, "Dynamic Resource Allocation"},
		{"lost volume", func(b *planning.Batch) {
			b.Pending[0].Spec.Volumes = []planning.Volume{{Claim: "data", Problem: "it is lost"}}
		}, planning.RulePod, "volume claim data: it is lost"},
		{"anti-affinity over zones, and only one zone", func(b *planning.Batch) {
			apart("web")(&b.Pending[0].Spec)
			b.Pending[0].Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = corev1.LabelTopologyZone
		}, planning.RuleTopology, "every topology.kubernetes.io/zone has a pod that its anti-affinity selects"},
		{"lost volume next to a pod with a usable one", func(b *planning.Batch) {
			b.Pending[0].Spec.Volumes = []planning.Volume{{Claim: "data", Problem: "it is lost"}}
			other := planningtest.NewPods("other", 1, "1", "512Mi", func(s *planning.PodSpec) { s.Volumes = []planning.Volume{{Claim: "other"}} })
			b.Pending = slices.Insert(b.Pending, 0, other)
		}, planning.RulePod, "volume claim data: it is lost"},
		{"minValues", func(b *planning.Batch) {
			pool(b).Spec.Template.Spec.Requirements[0].MinValues = new(2)
		}, planning.RulePod, "minValues"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(planningtest.NewPods("web", 2, "500m", "512Mi"))
			tt.edit(&batch)
			rules, detail := labelRule(t, batch)
			if !slices.Contains(rules, tt.rule) || !strings.Contains(detail, tt.detail) {
				t.Errorf("rejected by %v: %s\nwant %s: %s", rules, detail, tt.rule, tt.detail)
			}
		})
	}
}

// TestReasonsAreNamedOnce rejects a pod whose anti-affinity has two terms over zones and one over another label.
func TestReasonsAreNamedOnce(t *testing.T) {
	term := func(key string, labels ...string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selector(labels...)}
	}
	batch := planningtest.NewBatch(planningtest.NewPods("web", 2, "500m", "64Mi", requireLabels("app", "web", "tier", "front"),
		averse(term(zoneKey, "app", "web"), term(karpenter.CapacityTypeLabelKey, "app", "web"), term(zoneKey, "tier", "front"))))
	rules, detail := labelRule(t, batch)
	if !slices.Contains(rules, planning.RuleTopology) || strings.Count(detail, "every "+zoneKey) != 1 {
		t.Errorf("rejected by %v: %s\nwant each reason once", rules, detail)
	}
}

// TestPoolsWithoutTypes checks that a pool without any instance type is distinguished from one without a
// type for the pod: the first is the pool owner's problem, the second the pod owner's.
func TestPoolsWithoutTypes(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*planning.Batch)
		want bool
	}{
		{"no image for the types", func(b *planning.Batch) {
			b.Snapshot.NodeClasses[0].Status.AMIs = b.Snapshot.NodeClasses[0].Status.AMIs[1:]
		}, true},
		{"sold out", func(b *planning.Batch) {
			b.Snapshot.Unavailable = []planning.Unavailable{{Offering: event.Offering{Zone: "ap-northeast-2a"}, Until: planningtest.Now.Add(1)}}
		}, true},
		{"no type matches the pod", func(b *planning.Batch) {
			b.Pending[0].Spec.NodeSelector = map[string]string{karpenter.LabelInstanceSize: "8xlarge"}
		}, false},
	} {
		batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "500m", "512Mi"))
		tt.edit(&batch)
		plan := solve(t, batch)
		if len(plan.Unplaced) != 1 || plan.Unplaced[0].Rejections[0].LacksInstanceTypes != tt.want {
			t.Errorf("%s: %+v", tt.name, plan.Unplaced)
		}
	}
}

func TestHeavierPoolFirst(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "500m", "512Mi"))
	named := func(name string, weight int32) karpenter.NodePool {
		pool := planningtest.NewNodePool()
		pool.Name = name
		if weight > 0 {
			pool.Spec.Weight = &weight
		}
		return pool
	}
	for _, tt := range []struct {
		name  string
		pools []karpenter.NodePool
		want  string
	}{
		{"weight", []karpenter.NodePool{named("a", 10), named("z", 0)}, "a"},
		{"equal weights: the later name", []karpenter.NodePool{named("a", 0), named("z", 0)}, "z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch.Snapshot.NodePools = tt.pools
			if got := solve(t, batch).Nodes[0].NodePool; got != tt.want {
				t.Errorf("pool %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("fallback", func(t *testing.T) {
		small := named("heavy", 50)
		small.Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: resource.MustParse("0")}
		batch.Snapshot.NodePools = []karpenter.NodePool{small, named("light", 1)}
		if got := solve(t, batch).Nodes[0].NodePool; got != "light" {
			t.Errorf("pool %s, want the pool of lower weight", got)
		}
	})
}

func TestInvalidClassDoesNotAffectOthers(t *testing.T) {
	bad := planningtest.NewPods("bad", 2, "1", "1Gi")
	bad.Spec.ResourceClaims = 1
	result := solve(t, planningtest.NewBatch(bad, planningtest.NewPods("good", 2, "1", "1Gi")))
	if len(result.Unplaced) != 1 || len(result.Unplaced[0].Pods) != 2 || len(result.Nodes) == 0 {
		t.Errorf("unplaced %+v, %d nodes", result.Unplaced, len(result.Nodes))
	}
}

func TestSameBatchSameResult(t *testing.T) {
	batch := planningtest.NewBatch(
		planningtest.NewPods("a", 7, "700m", "1Gi"), planningtest.NewPods("b", 7, "700m", "1Gi", apart("b")), planningtest.NewPods("c", 3, "1", "6Gi"))
	cat := planningtest.NewCatalogue()
	first, err := json.Marshal(solver.Solve(batch, cat))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := json.Marshal(solver.Solve(batch, cat))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first), string(again)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// pauseLaunches returns the entry of the first NodePool after that many refused launches.
func pauseLaunches(b *planning.Batch, refused int) planning.Unavailable {
	np := &b.Snapshot.NodePools[0]
	return planning.Unavailable{
		NodePool: np.Name, SpecKey: planning.LaunchSpecKey(np, &b.Snapshot.NodeClasses[0]), Refused: refused, Reason: "UnauthorizedOperation",
		Until: planningtest.Now.Add(planning.LaunchPause(refused)),
	}
}

// A NodePool whose launches EC2 refuses launches nothing until its pause ends or its specs change. Its pods may use another NodePool.
func TestRefusedLaunchesPauseNodePool(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*planning.Batch)
		want string
	}{
		{"during the pause", func(*planning.Batch) {}, "second"},
		{"after the pause", func(b *planning.Batch) { b.Snapshot.TakenAt = b.Snapshot.Unavailable[0].Until }, "first"},
		{"the NodePool has changed", func(b *planning.Batch) { b.Snapshot.NodePools[0].Generation++ }, "first"},
		{"the NodePool was created again", func(b *planning.Batch) { b.Snapshot.NodePools[0].UID = "again" }, "first"},
		{"the EC2NodeClass has changed", func(b *planning.Batch) { b.Snapshot.NodeClasses[0].Generation++ }, "first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(planningtest.NewPods("web", 1, "1", "1Gi"))
			s := &batch.Snapshot
			s.NodePools = append(s.NodePools, *s.NodePools[0].DeepCopy())
			s.NodePools[0].Name, s.NodePools[1].Name = "first", "second"
			s.NodePools[0].Spec.Weight = new(int32(10))
			s.Unavailable = []planning.Unavailable{pauseLaunches(&batch, 7)}
			tt.edit(&batch)
			if result := solve(t, batch); len(result.Nodes) != 1 || result.Nodes[0].NodePool != tt.want {
				t.Errorf("planned %+v, want a node of NodePool %s", result.Nodes, tt.want)
			}
		})
	}
}
