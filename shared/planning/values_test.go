package planning_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// requirement is one requirement as written, with its own simple evaluation.
type requirement struct {
	operator corev1.NodeSelectorOperator
	values   []string
}

// matches evaluates the requirement as Kubernetes does, operator by operator.
func (r requirement) matches(value string, present bool) bool {
	number := func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil
	}
	listed := false
	for _, v := range r.values {
		listed = listed || v == value
	}
	switch r.operator {
	case karpenter.NodeSelectorOpIn:
		return present && listed
	case karpenter.NodeSelectorOpNotIn:
		return !present || !listed
	case karpenter.NodeSelectorOpExists:
		return present
	case karpenter.NodeSelectorOpDoesNotExist:
		return !present
	}
	n, isNumber := number(value)
	bound, _ := number(r.values[0])
	if !present || !isNumber {
		return false
	}
	switch r.operator {
	case karpenter.NodeSelectorOpGt:
		return n > bound
	case karpenter.NodeSelectorOpLt:
		return n < bound
	case karpenter.NodeSelectorOpGte:
		return n >= bound
	default:
		return n <= bound
	}
}

func (r requirement) set() planning.Values { return planning.NewValues(r.operator, r.values...) }

// universe is every value that the generated requirements may use, and a few more.
var universe = []string{"", "a", "b", "c", "0", "1", "2", "3", "4", "5", "6", "7"}

func genRequirement() *rapid.Generator[requirement] {
	return rapid.Custom(func(t *rapid.T) requirement {
		operator := rapid.SampledFrom([]corev1.NodeSelectorOperator{
			karpenter.NodeSelectorOpIn, karpenter.NodeSelectorOpNotIn, karpenter.NodeSelectorOpExists, karpenter.NodeSelectorOpDoesNotExist,
			karpenter.NodeSelectorOpGt, karpenter.NodeSelectorOpLt, karpenter.NodeSelectorOpGte, karpenter.NodeSelectorOpLte,
		}).Draw(t, "operator")
		switch operator {
		case karpenter.NodeSelectorOpIn, karpenter.NodeSelectorOpNotIn:
			return requirement{operator, rapid.SliceOfN(rapid.SampledFrom(universe[1:10]), 1, 5).Draw(t, "values")}
		case karpenter.NodeSelectorOpExists, karpenter.NodeSelectorOpDoesNotExist:
			return requirement{operator, nil}
		default:
			return requirement{operator, []string{strconv.Itoa(rapid.IntRange(0, 6).Draw(t, "bound"))}}
		}
	})
}

func TestValuesAgreeWithNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(genRequirement(), 1, 4).Draw(t, "requirements")
		set := planning.AnyValue()
		for _, r := range all {
			set = set.Intersect(r.set())
		}
		model := func(value string, present bool) bool {
			for _, r := range all {
				if !r.matches(value, present) {
					return false
				}
			}
			return true
		}
		some := set.AllowsAbsent()
		if want := model("", false); set.AllowsAbsent() != want {
			t.Fatalf("%s.AllowsAbsent = %v, want %v", set, set.AllowsAbsent(), want)
		}
		for _, value := range universe {
			got, want := set.Has(value), model(value, true)
			if got != want {
				t.Fatalf("%q in %s: %v, want %v", value, set, got, want)
			}
			some = some || got
		}
		if some && set.IsEmpty() {
			t.Fatalf("IsEmpty(%s) = true, want false", set)
		}
	})
}

func TestIntersectionIsASetIntersection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genRequirement().Draw(t, "a").set(), genRequirement().Draw(t, "b").set(), genRequirement().Draw(t, "c").set()
		same := func(law string, x, y planning.Values) {
			if !x.IsSubset(y) || !y.IsSubset(x) {
				t.Fatalf("%s: %s is not %s", law, x, y)
			}
		}
		same("commutative", a.Intersect(b), b.Intersect(a))
		same("associative", a.Intersect(b).Intersect(c), a.Intersect(b.Intersect(c)))
		same("idempotent", a.Intersect(a), a)
		same("neutral", a.Intersect(planning.AnyValue()), a)
		if !a.Intersect(b).IsSubset(a) {
			t.Fatalf("%s is not a subset of %s", a.Intersect(b), a)
		}
	})
}

func TestRequirementsRoundTripThroughClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := genRequirement().Draw(t, "a").set().Intersect(genRequirement().Draw(t, "b").set())
		if set.IsEmpty() {
			t.Skip("pools and claims have no unsatisfiable requirements")
		}
		was := planning.Requirements{"key": set}
		now := planning.NewNodeClaimRequirements(was.NodeSelectorRequirements())
		if !now["key"].IsSubset(set) || !set.IsSubset(now["key"]) {
			t.Fatalf("round trip of %s = %s", set, now["key"])
		}
	})
}

func TestEmptyRanges(t *testing.T) {
	gt := func(n string) planning.Values { return planning.NewValues(karpenter.NodeSelectorOpGt, n) }
	lt := func(n string) planning.Values { return planning.NewValues(karpenter.NodeSelectorOpLt, n) }
	not := func(v ...string) planning.Values { return planning.NewValues(karpenter.NodeSelectorOpNotIn, v...) }
	for _, tt := range []struct {
		name string
		set  planning.Values
		want bool
	}{
		{"crossed bounds", gt("5").Intersect(lt("5")), true},
		{"no number between the bounds", gt("3").Intersect(lt("4")), true},
		{"one number between the bounds", gt("3").Intersect(lt("5")), false},
		{"the only number between the bounds excluded", gt("3").Intersect(lt("5")).Intersect(not("4")), true},
		{"bound that is not a number", gt("many"), true},
		{"past the largest number", gt("9223372036854775807"), true},
		{"unknown operator", planning.NewValues("Like", "a"), true},
		{"In nothing", planning.In(), true},
		{"not In nothing", not(), false},
		{"absent", planning.AbsentValue(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.set.IsEmpty(); got != tt.want {
				t.Errorf("Empty(%s) = %v, want %v", tt.set, got, tt.want)
			}
		})
	}
}

func TestCompatible(t *testing.T) {
	pool := planning.NewLabelRequirements(map[string]string{"team": "shop"}).WithRequirement(karpenter.CapacityTypeLabelKey, planning.In("spot"))
	for _, tt := range []struct {
		name, key string
		want      planning.Values
		conflict  bool
	}{
		{"well-known and undefined", karpenter.LabelInstanceFamily, planning.In("m5"), false},
		{"well-known and other", karpenter.CapacityTypeLabelKey, planning.In("on-demand"), true},
		{"custom and defined", "team", planning.In("shop", "web"), false},
		{"custom and other", "team", planning.In("web"), true},
		{"custom and undefined", "tier", planning.In("gold"), true},
		{"custom, undefined, and excluded", "tier", planning.NewValues(karpenter.NodeSelectorOpNotIn, "gold"), false},
		{"custom, undefined, and absent", "tier", planning.AbsentValue(), false},
		{"beta label", "failure-domain.beta.kubernetes.io/zone", planning.In("a"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := planning.Requirements{}.WithRequirement(tt.key, tt.want)
			_, conflict := pool.FindConflict(want)
			if conflict != tt.conflict || pool.IsCompatible(want) == conflict {
				t.Errorf("conflict = %v (compatible %v), want %v", conflict, pool.IsCompatible(want), tt.conflict)
			}
		})
	}
}

func TestLabelsAreNormalized(t *testing.T) {
	got := planning.NewLabelRequirements(map[string]string{"beta.kubernetes.io/arch": "arm64"}).Labels()
	if diff := cmp.Diff(map[string]string{corev1.LabelArchStable: "arm64"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMinValuesAreKept(t *testing.T) {
	a := planning.In("a", "b", "c").WithMinValues(2)
	b := planning.In("a", "b").WithMinValues(1)
	if got := a.Intersect(b).MinValues(); got != 2 {
		t.Errorf("minValues = %d, want the larger", got)
	}
	list := planning.Requirements{"key": a}.NodeSelectorRequirements()
	if len(list) != 1 || list[0].MinValues == nil || *list[0].MinValues != 2 {
		t.Errorf("list = %+v", list)
	}
}
