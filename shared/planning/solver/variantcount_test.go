package solver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestVariantsAreBounded splits a pool by three open labels, for each of which pods ask for 30 values.
func TestVariantsAreBounded(t *testing.T) {
	base, named := planning.Requirements{}, namedLabels{}
	for _, key := range []string{"team", "tier", "rack"} {
		base.Add(key, planning.NewValues(corev1.NodeSelectorOpExists))
		for i := range 30 {
			named.addLabel(key, fmt.Sprint("value-", i))
		}
	}
	w := &state{snapshot: &planning.Snapshot{TakenAt: time.Unix(0, 0)}}
	if n := len(w.listVariants(base, named)); n <= 30 || n > maxVariants {
		t.Errorf("%d variants, want at most %d, and one for each value of a label", n, maxVariants)
	}
}

// All expressions that a value of a variant satisfies are satisfied by one value together, and each expression that the NodePool's
// values satisfy has a variant.
func TestVariantsHaveACommonValue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	operators := []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
	}
	draw := func() corev1.NodeSelectorRequirement {
		e := corev1.NodeSelectorRequirement{Key: "tier", Operator: operators[random.IntN(len(operators))]}
		if e.Operator != corev1.NodeSelectorOpExists && e.Operator != corev1.NodeSelectorOpDoesNotExist {
			e.Values = []string{[]string{"0", "1", "2", "5", "9", "gold"}[random.IntN(6)]}
		}
		return e
	}
	for range 2000 {
		drawn := draw()
		pool, named := planning.NewValues(drawn.Operator, drawn.Values...), namedLabels{}
		var expressions []corev1.NodeSelectorRequirement
		for range 1 + random.IntN(4) {
			expressions = append(expressions, draw())
			named.addTerm(corev1.NodeSelectorTerm{MatchExpressions: expressions[len(expressions)-1:]})
		}
		variants := named["tier"].split(pool)
		for _, v := range variants {
			common := v
			for _, e := range expressions {
				if wanted := planning.NewValues(e.Operator, e.Values...); !v.Intersect(wanted).IsEmpty() {
					common = common.Intersect(wanted)
				}
			}
			if common.IsEmpty() {
				t.Errorf("NodePool %s, expressions %v: no value of the variant %s satisfies all", pool, expressions, v)
			}
		}
		for _, e := range expressions {
			wanted := planning.NewValues(e.Operator, e.Values...)
			found := slices.ContainsFunc(variants, func(v planning.Values) bool { return !v.Intersect(wanted).IsEmpty() })
			if possible := !pool.Intersect(wanted).IsEmpty(); len(variants) > 0 && found != possible {
				t.Errorf("NodePool %s, expressions %v: there is a variant for %s: %t, want %t", pool, expressions, wanted, found, possible)
			}
		}
	}
}
