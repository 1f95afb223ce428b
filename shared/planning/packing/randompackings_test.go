package packing_test

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// widen adds to a problem what drawProblem leaves out: more and larger candidates, affinity and soft rules, running pods that rules
// count, minValues and other policies.
func (w *randomProblem) widen(t *rapid.T) {
	w.problem.Policy = rapid.SampledFrom(packingPolicies).Draw(t, "policy")
	for i := range w.problem.Candidates {
		c := &w.problem.Candidates[i]
		c.MixedStage, c.Flexible = min(c.Stage, rapid.IntRange(0, 1).Draw(t, "mixed stage")), rapid.SampledFrom([]int{0, 1, 3, 15}).Draw(t, "flexible")
	}
	for i := range w.problem.Pools {
		if least := rapid.IntRange(0, 8).Draw(t, "min values"); least > 1 && least < 4 {
			w.problem.Pools[i].Enough = func(candidates packing.Set, _ uint64) bool { return candidates.Len() >= least }
		}
	}
	for i := range w.problem.ZoneQuotas {
		w.problem.ZoneQuotas[i].Nodes = rapid.SampledFrom([]int64{packing.Unlimited, 3, 7}).Draw(t, "zone nodes")
		if rapid.Bool().Draw(t, "an existing node") {
			w.problem.ZoneQuotas[i].Subtract(2)
		}
	}
	for i := range w.problem.Rules {
		w.problem.Rules[i].Soft = rapid.IntRange(0, 3).Draw(t, "soft") == 0
		for n := range w.problem.Nodes {
			if rapid.Bool().Draw(t, "counted") {
				inside := rapid.Int32Range(0, 1).Draw(t, "inside")
				w.problem.Nodes[n].RuleCounts = append(w.problem.Nodes[n].RuleCounts, packing.RuleCount{Rule: int32(i), OwnersInside: inside, Members: inside + rapid.Int32Range(0, 1).Draw(t, "members")})
			}
		}
	}
	all := packing.NewSet(len(w.problem.Candidates)) // Groups with equal candidates share one set, as those of the solver.
	for k := range w.problem.Candidates {
		all.Add(k)
	}
	for i := range w.groups {
		g := &w.groups[i]
		if rapid.Bool().Draw(t, "all candidates") {
			g.Candidates = all
		}
		if rapid.IntRange(0, 4).Draw(t, "many") == 0 {
			g.Count *= 8
		}
		if rapid.IntRange(0, 5).Draw(t, "affine") == 0 {
			at := int32(len(w.problem.Rules))
			w.problem.Rules = append(w.problem.Rules, packing.Rule{WithMember: math.MaxInt32, WithOther: math.MaxInt32, Soft: true})
			g.AffinityRules = []int32{at}
			member := &w.groups[rapid.IntRange(0, len(w.groups)-1).Draw(t, "member")]
			member.Roles = append(member.Roles, packing.RuleRole{Rule: at, Member: true})
		}
	}
}

// TestPackingsOfRandomProblems compares the packings of fixed random problems with a golden file: their prices, numbers of nodes and
// steps, and a hash of everything, added up for each ten problems. Other tests check that packings are valid; this one shows which
// packings a change changes.
func TestPackingsOfRandomProblems(t *testing.T) {
	var out strings.Builder
	for seed := 0; seed < 3000; seed += 10 {
		var sum packingSummary
		for i := range 10 {
			w := rapid.Custom(func(t *rapid.T) randomProblem {
				w := drawProblem(t)
				w.widen(t)
				return w
			}).Example(seed + i)
			p := w.pack
			if i%3 == 0 {
				p = w.packSingly
			}
			packed := p()
			w.checkZoneQuotas(t, packed)
			sum.add(&w, packed)
		}
		fmt.Fprintf(&out, "%d to %d: %s\n", seed, seed+9, &sum)
	}
	const file = "testdata/packings.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("packings changed; if they are as good as before, run go test ./planning/packing -run %s -update:\n%s", t.Name(), diff)
	}
}

// packSingly packs half of the pod groups, and then places pods of the others one by one.
func (w *randomProblem) packSingly() *packing.Packer {
	p := packing.New(w.problem)
	half := len(w.groups) / 2
	p.Pack(w.groups[:half])
	for _, group := range w.groups[half:] {
		one := group
		one.Count = 1
		for n := range min(group.Count, 12) {
			if n%2 == 0 && w.placeInCheapestBin(p, one) {
				continue
			}
			if _, ok := p.PlaceOnOpen(one); !ok {
				p.PlaceOnNew(one)
			}
		}
	}
	p.Finish()
	return p
}

// placeInCheapestBin places a pod in the bin that gets the least more expensive, if that costs less than a new node.
func (w *randomProblem) placeInCheapestBin(p *packing.Packer, one packing.Group) bool {
	_, least, ok := p.PriceAlone(&one)
	if !ok {
		least = math.Inf(1)
	}
	best := -1
	for b := range p.Bins() {
		if _, extra, ok := p.PriceInBin(b, &one); ok && extra < least && p.ListLarger(b, &one).Len() > 0 {
			best, least = b, extra
		}
	}
	if best < 0 {
		return false
	}
	_, ok = p.PlaceInBin(best, one)
	return ok
}

// packingSummary is the sum of packings. The hash leaves out prices, whose last bits differ between processors.
type packingSummary struct {
	cost, bound                   float64
	bins, placed, existing, steps int
	hash                          hash.Hash32
}

func (s *packingSummary) String() string {
	return fmt.Sprintf("$%.0f, at least $%.0f, %d pods on %d new nodes, %d on existing ones, %d steps, #%08x", s.cost, s.bound, s.placed, s.bins, s.existing, s.steps, s.hash.Sum32())
}

func (s *packingSummary) add(w *randomProblem, p *packing.Packer) {
	if s.hash == nil {
		s.hash = fnv.New32a()
	}
	s.bound, s.bins, s.steps = s.bound+p.LowerBound(), s.bins+len(p.Bins()), s.steps+p.Steps()
	for _, line := range describeBins(p) {
		fmt.Fprintln(s.hash, line)
	}
	for _, bin := range p.Bins() {
		least := math.Inf(1)
		for _, o := range w.problem.Candidates[bin.Candidate].Prices {
			if bin.ZoneCapacityTypes&(1<<o.ZoneCapacityType) != 0 {
				least = min(least, o.Price)
			}
		}
		s.cost += least
		for _, pods := range bin.Pods {
			s.placed += pods.Count
		}
	}
	for i := range w.problem.Nodes {
		fmt.Fprintln(s.hash, p.PodsOnNode(i))
		for _, pods := range p.PodsOnNode(i) {
			s.existing += pods.Count
		}
	}
}

func describeBins(p *packing.Packer) []string {
	var out []string
	for b, bin := range p.Bins() {
		out = append(out, fmt.Sprint(bin.Candidate, bin.ZoneCapacityTypes, bin.Pods, p.BuyableTypes(b)))
	}
	return out
}
