package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// costing returns an intent for claims with these highest prices, in millionths of a dollar.
func costing(id, pool string, micro int64, claims ...string) planning.PlannedIntent {
	out := intent(id, pool, "1", claims...)
	for i := range out.Claims {
		maps.Copy(out.Claims[i].Ceiling, resources(string(planning.PriceResource), strconv.FormatInt(micro, 10)))
	}
	return out
}

// withMaxPrice returns a claim that is not launched and has this highest price.
func withMaxPrice(name, pool string, micro int64) *karpenter.NodeClaim {
	c := planned(name, pool, "1")
	c.Annotations[launchspec.CeilingAnnotation] = fmt.Sprintf(`{"cpu":"1","%s":"%d"}`, planning.PriceResource, micro)
	return c
}

// withPrice sets the price of a claim.
func withPrice(c *karpenter.NodeClaim, dollars string) *karpenter.NodeClaim {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[planning.PriceAnnotation] = dollars
	return c
}

func poolWithPriceLimit(name, limit string) *karpenter.NodePool {
	p := pool(name)
	p.Annotations = map[string]string{policy.PriceLimit: limit}
	return p
}

func TestAdmitWithinPrices(t *testing.T) {
	two := []planning.PlannedIntent{costing("1", "p", 40_000, "a", "b"), costing("2", "p", 40_000, "c")}
	for _, test := range []struct {
		name    string
		cluster *float64
		pools   []*karpenter.NodePool
		exist   []*karpenter.NodeClaim
		prices  map[string]float64
		intents []planning.PlannedIntent
		passed  string
		reason  string
	}{
		{name: "no limit", pools: []*karpenter.NodePool{pool("p")}, exist: []*karpenter.NodeClaim{launched("x", "p", "1")}, intents: two, passed: "1 2"},
		{name: "all intents within the limit", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.12")}, intents: two, passed: "1 2"},
		{name: "the second intent exceeds the limit", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.1199")}, intents: two, passed: "1",
			reason: "joist.sh/price-limit of $0.1199 an hour would be exceeded: $0.1200 with this intent"},
		{name: "the first intent exceeds the limit", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.05")}, intents: two, passed: "2", reason: "$0.0800 with this intent"},
		{name: "a launched claim with a known price counts", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.1")}, exist: []*karpenter.NodeClaim{withPrice(launched("x", "p", "1"), "0.02")}, intents: two, passed: "1", reason: "$0.1400"},
		{name: "a launched claim counts with its price, not with its maximum", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.1")}, exist: []*karpenter.NodeClaim{withPrice(withMaxPrice("x", "p", 90_000), "0.02")}, intents: two, passed: "1", reason: "$0.1400"},
		{name: "an unlaunched claim counts with its maximum", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.1")}, exist: []*karpenter.NodeClaim{withMaxPrice("x", "p", 60_000)}, intents: two, passed: "2", reason: "$0.1400"},
		{name: "a claim being deleted counts", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.1")}, exist: []*karpenter.NodeClaim{going(withPrice(launched("x", "p", "1"), "0.06"))}, intents: two, passed: "2", reason: "$0.1400"},
		{name: "a launched claim without a price yet counts with its maximum", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.1")}, exist: []*karpenter.NodeClaim{func() *karpenter.NodeClaim {
			c := withMaxPrice("x", "p", 60_000)
			c.Status.Capacity = resources("cpu", "1")
			return c
		}()}, intents: two, passed: "2", reason: "$0.1400"},
		{name: "claims of another pool do not count", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.12"), pool("q")}, exist: []*karpenter.NodeClaim{withPrice(launched("x", "q", "1"), "9"), launched("y", "q", "1")}, intents: two, passed: "1 2"},
		{name: "existing claim without a price", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "9")}, exist: []*karpenter.NodeClaim{launched("x", "p", "1")}, intents: two[:1],
			reason: "the price of NodeClaim x is unknown: write it as its annotation joist.sh/price-per-hour"},
		{name: "existing claim whose price the plan states", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.12")}, exist: []*karpenter.NodeClaim{launched("x", "p", "1")}, prices: map[string]float64{"x": 0.05}, intents: two, passed: "2", reason: "$0.1300"},
		{name: "invalid limit", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "a lot")}, intents: two[:1], reason: `annotation joist.sh/price-limit is "a lot"`},
		{name: "plan without a price", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "9")}, intents: []planning.PlannedIntent{intent("1", "p", "1", "a")}, reason: "the plan does not state the price"},
		{name: "limit of zero", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0")}, intents: two[1:], reason: "price-limit of $0 an hour"},
		{name: "existing claims of the same intent are not counted twice", pools: []*karpenter.NodePool{poolWithPriceLimit("p", "0.08")}, exist: []*karpenter.NodeClaim{withMaxPrice("a", "p", 40_000)}, intents: two[:1], passed: "1"},
		{name: "limit of the cluster", cluster: new(0.1), pools: []*karpenter.NodePool{pool("p"), pool("q")}, exist: []*karpenter.NodeClaim{withPrice(launched("x", "q", "1"), "0.05")}, intents: two, passed: "2",
			reason: "the cluster's price limit of $0.1 an hour would be exceeded: $0.1300"},
		{name: "limit of the cluster, two pools", cluster: new(0.1), pools: []*karpenter.NodePool{pool("p"), pool("q")}, intents: []planning.PlannedIntent{two[0], costing("3", "q", 40_000, "d")}, passed: "1", reason: "$0.1200"},
		{name: "limit of the cluster, claim of another provider", cluster: new(0.12), pools: []*karpenter.NodePool{pool("p"), poolOfAutoMode("q")}, exist: []*karpenter.NodeClaim{ofAutoMode(launched("x", "q", "1"))}, intents: two, passed: "1 2"},
		{name: "limit of the cluster, existing claim without a price", cluster: new(9.0), pools: []*karpenter.NodePool{pool("p"), pool("q")}, exist: []*karpenter.NodeClaim{launched("x", "q", "1")}, intents: two[:1], reason: "the price of NodeClaim x is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := planning.Plan{Outbox: "outbox", Seq: 7, Intents: test.intents, Prices: test.prices}
			got := admission.Admitter{PriceLimit: test.cluster}.AdmitPlan(plan, test.pools, test.exist)
			if passed := strings.Join(got.Intents, " "); passed != test.passed {
				t.Errorf("admitted %q, want %q: %+v", passed, test.passed, got.Refused)
			}
			if (test.reason != "") != (len(got.Refused) > 0) {
				t.Fatalf("refused: %+v", got.Refused)
			}
			if test.reason != "" && !strings.Contains(got.Refused[0].Reason, test.reason) {
				t.Errorf("the reason %q does not contain %q", got.Refused[0].Reason, test.reason)
			}
		})
	}
}

// pricedCluster is a cluster that admits random batches, and whose instances cost up to the planned
// price.
type pricedCluster struct {
	door   admission.Admitter
	pools  []*karpenter.NodePool
	limits map[string]int64
	claims []*karpenter.NodeClaim
	made   int
	// passed and turned count the admitted and the rejected intents.
	passed, turned int
}

// check counts each claim with its highest price.
func (s *pricedCluster) check(t *rapid.T) {
	sums := map[string]int64{}
	for _, c := range s.claims {
		price, known := admission.ClaimPrice(c, planning.Plan{})
		if !known {
			t.Fatalf("the price of %s is unknown", c.Name)
		}
		sums[c.Labels[karpenter.NodePoolLabelKey]] += price
		sums[""] += price
	}
	for name, limit := range s.limits {
		if sums[name] > limit {
			t.Fatalf("the claims of %q cost %d, its limit is %d", name, sums[name], limit)
		}
	}
}

func (s *pricedCluster) admit(t *rapid.T) {
	plan := planning.Plan{Outbox: "outbox", Seq: uint64(s.made)}
	for i := range rapid.IntRange(1, 3).Draw(t, "intents") {
		var names []string
		for range rapid.IntRange(1, 3).Draw(t, "claims") {
			s.made++
			names = append(names, fmt.Sprint("c", s.made))
		}
		pool := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pool")
		plan.Intents = append(plan.Intents, costing(strconv.Itoa(i), pool, rapid.SampledFrom([]int64{0, 12_345, 40_000, 100_000, 300_000}).Draw(t, "ceiling"), names...))
	}
	got := s.door.AdmitPlan(plan, s.pools, s.claims)
	s.passed, s.turned = s.passed+len(got.Intents), s.turned+len(got.Refused)
	for _, one := range plan.Intents {
		for _, c := range one.Claims {
			if price := c.Ceiling[planning.PriceResource]; slices.Contains(got.Claims, c.Object.Name) {
				s.claims = append(s.claims, withMaxPrice(c.Object.Name, one.NodePool, price.Value()))
			}
		}
	}
}

func (s *pricedCluster) one(t *rapid.T) int {
	if len(s.claims) == 0 {
		t.Skip("no claim exists")
	}
	return rapid.IntRange(0, len(s.claims)-1).Draw(t, "claim")
}

// In any order of plans and snapshots, nothing is admitted that could exceed the price limits.
func TestPriceLimitsAreNeverExceeded(t *testing.T) {
	passed, turned := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]float64{0.1, 0.25, 0.6, 3}).Draw(t, "limit of the cluster")
		s := &pricedCluster{door: admission.Admitter{PriceLimit: &limit}, limits: map[string]int64{"": planning.LimitToMicrodollars(limit)}}
		for _, name := range []string{"p", "q"} {
			own := rapid.SampledFrom([]float64{0, 0.1, 0.3, 0.55}).Draw(t, "limit")
			s.pools, s.limits[name] = append(s.pools, poolWithPriceLimit(name, planning.FormatPrice(own))), planning.LimitToMicrodollars(own)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":      s.check,
			"admit": s.admit,
			"launch": func(t *rapid.T) {
				c := s.claims[s.one(t)]
				most, _ := admission.ClaimPrice(c, planning.Plan{})
				c.Status.Capacity = resources("cpu", "1")
				if rapid.Bool().Draw(t, "price annotated") {
					withPrice(c, planning.FormatPrice(float64(rapid.Int64Range(0, most).Draw(t, "price"))/1e6))
				}
			},
			"delete": func(t *rapid.T) { going(s.claims[s.one(t)]) },
			"gone":   func(t *rapid.T) { i := s.one(t); s.claims = slices.Delete(s.claims, i, i+1) },
		})
		passed, turned = passed+s.passed, turned+s.turned
	})
	if passed < 100 || turned < 100 {
		t.Errorf("%d intents were admitted and %d refused, want at least 100 of each", passed, turned)
	}
}

// A claim of an abandoned plan is launched only within the price limits.
func TestAbandonedClaimsWithinPrices(t *testing.T) {
	old := sharing(of(withMaxPrice("old", "p", 60_000), "outbox/6", false), "x", "1")
	for _, test := range []struct {
		cluster float64
		pool    string
		kept    bool
	}{{0.06, "1", true}, {0.0599, "1", false}, {1, "0.0599", false}, {1, "invalid", false}} {
		got := admission.Admitter{PriceLimit: &test.cluster}.AdmitPlan(planning.Plan{Outbox: "outbox", Seq: 7}, []*karpenter.NodePool{poolWithPriceLimit("p", test.pool)}, []*karpenter.NodeClaim{old})
		if (len(got.Claims) == 1) != test.kept {
			t.Errorf("limits %g and %s: the claims %v may be launched", test.cluster, test.pool, got.Claims)
		}
	}
}

// Two concurrent batches are each planned within the limit, and only one of them is admitted.
func TestConcurrentPlansDoNotOvershootPrices(t *testing.T) {
	cat := planningtest.NewCatalogue()
	var plans []planning.Plan
	var np karpenter.NodePool
	for seq := range uint64(2) {
		batch := planningtest.NewBatch(planningtest.NewPods(fmt.Sprint("web", seq), 12, "1500m", "1Gi"))
		batch.Seq = seq + 1
		batch.Snapshot.NodePools[0].Annotations = map[string]string{policy.PriceLimit: "0.2"}
		ref, _, err := blob.Encode(planning.BatchKind, batch)
		if err != nil {
			t.Fatal(err)
		}
		built, err := launchspec.Build(batch, ref, solver.Solve(batch, cat), cat)
		if err != nil {
			t.Fatal(err)
		}
		np, plans = batch.Snapshot.NodePools[0], append(plans, built.Plan)
	}
	var claims []*karpenter.NodeClaim
	for i, plan := range plans {
		got := admission.Admitter{}.AdmitPlan(plan, []*karpenter.NodePool{&np}, claims)
		if i == 0 && (len(got.Refused) > 0 || len(got.Intents) == 0) {
			t.Fatalf("a plan within the limit was refused: %+v", got)
		}
		if i == 1 && len(got.Refused) == 0 {
			t.Errorf("both plans were admitted, so the limit was not tested")
		}
		for _, one := range plan.Intents {
			for _, c := range one.Claims {
				if slices.Contains(got.Claims, c.Object.Name) {
					claims = append(claims, &c.Object)
				}
			}
		}
	}
	sum := int64(0)
	for _, c := range claims {
		price, known := admission.ClaimPrice(c, planning.Plan{})
		if !known {
			t.Errorf("the price of %s is unknown", c.Name)
		}
		sum += price
	}
	if sum == 0 || sum > 200_000 {
		t.Errorf("the claims may cost %d in total, want at most 200000 and not 0", sum)
	}
}
