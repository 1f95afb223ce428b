package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func pool(name string, limits ...string) *karpenter.NodePool {
	p := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Limits = karpenter.Limits(resources(limits...))
	return p
}

// autoModeClass is a node class of EKS Auto Mode.
var autoModeClass = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}

func poolOfAutoMode(name string) *karpenter.NodePool {
	p := pool(name)
	p.Spec.Template.Spec.NodeClassRef = autoModeClass
	return p
}

func ofAutoMode(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c.Spec.NodeClassRef = autoModeClass
	return c
}

// launched returns a claim whose capacity is known, planned one with only a ceiling.
func launched(name, pool, cpu string) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabelKey: pool}}}
	c.Status.Capacity = resources("cpu", cpu)
	return c
}

func planned(name, pool, cpu string) *karpenter.NodeClaim {
	c := launched(name, pool, cpu)
	c.Status.Capacity = nil
	c.Annotations = map[string]string{launchspec.CeilingAnnotation: `{"cpu":"` + cpu + `"}`}
	return c
}

func of(c *karpenter.NodeClaim, batch string, admitted bool) *karpenter.NodeClaim {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[launchspec.BatchAnnotation] = batch
	if admitted {
		c.Annotations[admission.AdmittedAnnotation] = "2026-11-20T12:00:00Z"
	}
	return c
}

// sharing returns a claim of an intent of that many claims.
func sharing(c *karpenter.NodeClaim, intent, claims string) *karpenter.NodeClaim {
	c.Annotations[launchspec.IntentTag], c.Annotations[launchspec.ClaimsAnnotation] = intent, claims
	return c
}

func going(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	now := metav1.Now()
	c.DeletionTimestamp = &now
	return c
}

func terminating(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue}}
	return c
}

func proposed(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c.Annotations = map[string]string{planning.ProposalAnnotation: `{"id":"x","proposed":"2026-11-20T12:00:00Z"}`}
	return c
}

func replaced(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c.Annotations = map[string]string{planning.ProposalAnnotation: `{"id":"x","proposed":"2026-11-20T12:00:00Z","confirmed":"2026-11-20T12:01:00Z"}`}
	return c
}

func strict(p *karpenter.NodePool) *karpenter.NodePool {
	p.Annotations = map[string]string{"joist.sh/limits": "strict"}
	return p
}

// intent returns an intent for claims with that many CPUs each.
func intent(id, pool, cpu string, claims ...string) planning.PlannedIntent {
	out := planning.PlannedIntent{ID: id, NodePool: pool}
	for _, name := range claims {
		out.Claims = append(out.Claims, planning.PlannedClaim{
			Object:  karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}},
			Ceiling: resources("cpu", cpu, "nodes", "1"),
		})
	}
	return out
}

func withGPU(name, pool string) *karpenter.NodeClaim {
	c := launched(name, pool, "1")
	c.Status.Capacity = resources("nvidia.com/gpu", "1")
	return c
}

func TestAdmit(t *testing.T) {
	priced := poolWithPriceLimit("priced", "$2")
	for _, test := range []struct {
		name    string
		intents []planning.PlannedIntent
		pools   []*karpenter.NodePool
		exist   []*karpenter.NodeClaim
		leaving []string
		passed  []string
		claims  []string
		reason  string
	}{
		{
			name: "no limits", pools: []*karpenter.NodePool{pool("p")},
			intents: []planning.PlannedIntent{intent("1", "p", "64", "a", "b")},
			passed:  []string{"1"}, claims: []string{"a", "b"},
		}, {
			name: "exactly at the limit", pools: []*karpenter.NodePool{pool("p", "cpu", "8")},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a", "b")},
			passed:  []string{"1"}, claims: []string{"a", "b"},
		}, {
			name: "an intent is admitted completely or not at all", pools: []*karpenter.NodePool{pool("p", "cpu", "11")},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a", "b", "c")},
			reason:  "limit cpu=11 would be exceeded: 12",
		}, {
			name: "a later smaller intent is admitted", pools: []*karpenter.NodePool{pool("p", "cpu", "8")},
			intents: []planning.PlannedIntent{intent("1", "p", "16", "a"), intent("2", "p", "4", "b")},
			passed:  []string{"2"}, claims: []string{"b"}, reason: "cpu=8",
		}, {
			name: "admitted intents count for the next", pools: []*karpenter.NodePool{pool("p", "cpu", "8")},
			intents: []planning.PlannedIntent{intent("1", "p", "5", "a"), intent("2", "p", "5", "b")},
			passed:  []string{"1"}, claims: []string{"a"}, reason: "cpu=8 would be exceeded: 10",
		}, {
			name: "limits of pools are separate", pools: []*karpenter.NodePool{pool("p", "cpu", "5"), pool("q", "cpu", "5")},
			intents: []planning.PlannedIntent{intent("1", "p", "5", "a"), intent("2", "q", "5", "b")},
			passed:  []string{"1", "2"}, claims: []string{"a", "b"},
		}, {
			name: "existing claims count", pools: []*karpenter.NodePool{pool("p", "cpu", "8")},
			exist:   []*karpenter.NodeClaim{launched("x", "p", "2"), planned("y", "p", "2"), launched("z", "q", "100")},
			intents: []planning.PlannedIntent{intent("1", "p", "5", "a")},
			reason:  "9 with this intent",
		}, {
			name: "claims that are being deleted do not count", pools: []*karpenter.NodePool{pool("p", "cpu", "8", "nodes", "1")},
			exist: []*karpenter.NodeClaim{
				going(launched("x", "p", "6")), replaced(launched("y", "p", "6")), terminating(launched("z", "p", "6")), launched("old", "p", "6"),
			},
			leaving: []string{"old"},
			intents: []planning.PlannedIntent{intent("1", "p", "8", "a")},
			passed:  []string{"1"}, claims: []string{"a"},
		}, {
			name: "claims with an unconfirmed proposal count", pools: []*karpenter.NodePool{pool("p", "cpu", "8")},
			exist:   []*karpenter.NodeClaim{proposed(launched("x", "p", "6"))},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a")},
			reason:  "cpu=8",
		}, {
			name: "with strict limits, deleted claims count until they are gone", pools: []*karpenter.NodePool{strict(pool("p", "cpu", "8"))},
			exist:   []*karpenter.NodeClaim{going(launched("x", "p", "6"))},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a")},
			reason:  "cpu=8",
		}, {
			name: "with strict limits, replaced claims count", pools: []*karpenter.NodePool{strict(pool("p", "cpu", "8"))},
			exist:   []*karpenter.NodeClaim{launched("old", "p", "6")},
			leaving: []string{"old"},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a")},
			reason:  "cpu=8",
		}, {
			name: "static pools count nodes until they are gone", pools: []*karpenter.NodePool{func() *karpenter.NodePool {
				p := pool("p", "nodes", "1")
				p.Spec.Replicas = new(int64(1))
				return p
			}()},
			exist:   []*karpenter.NodeClaim{going(launched("x", "p", "6"))},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a")},
			reason:  "nodes=1",
		}, {
			name: "limit on nodes", pools: []*karpenter.NodePool{pool("p", "nodes", "2")},
			exist:   []*karpenter.NodeClaim{launched("x", "p", "1")},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a"), intent("2", "p", "1", "b")},
			passed:  []string{"1"}, claims: []string{"a"}, reason: "limit nodes=2 would be exceeded: 3",
		}, {
			name: "of several exceeded limits the first by name is reported", pools: []*karpenter.NodePool{pool("p", "nodes", "1", "pods", "0", "memory", "1", "ephemeral-storage", "1", "cpu", "1")},
			exist:   []*karpenter.NodeClaim{launched("x", "p", "1")},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			reason:  "limit cpu=1 would be exceeded: 2",
		}, {
			name: "limit of zero", pools: []*karpenter.NodePool{pool("p", "cpu", "0")},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			reason:  "cpu=0",
		}, {
			name: "exceeded limit on a resource that the intent does not request", pools: []*karpenter.NodePool{pool("p", "nvidia.com/gpu", "1")},
			exist:   []*karpenter.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{karpenter.NodePoolLabelKey: "p"}}, Status: karpenter.NodeClaimStatus{Capacity: resources("nvidia.com/gpu", "8")}}},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			passed:  []string{"1"}, claims: []string{"a"},
		}, {
			name: "existing claims of the same intent are not counted twice", pools: []*karpenter.NodePool{pool("p", "cpu", "8", "nodes", "2")},
			exist:   []*karpenter.NodeClaim{of(planned("a", "p", "4"), "outbox/7", false)},
			intents: []planning.PlannedIntent{intent("1", "p", "4", "a", "b")},
			passed:  []string{"1"}, claims: []string{"a", "b"},
		}, {
			name: "unknown pool", pools: []*karpenter.NodePool{pool("q")},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			reason:  "does not exist or is being deleted",
		}, {
			name: "pool of another provider", pools: []*karpenter.NodePool{poolOfAutoMode("p")},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			reason:  "belongs to another provider",
		}, {
			name: "a leftover claim of another provider", pools: []*karpenter.NodePool{poolOfAutoMode("p")},
			exist: []*karpenter.NodeClaim{ofAutoMode(sharing(of(planned("old", "p", "1"), "outbox/6", false), "x", "1"))},
		}, {
			name: "pool being deleted",
			pools: []*karpenter.NodePool{func() *karpenter.NodePool {
				p, now := pool("p"), metav1.Now()
				p.DeletionTimestamp = &now
				return p
			}()},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			reason:  "does not exist or is being deleted",
		}, {
			name: "leftover claims of an abandoned plan", pools: []*karpenter.NodePool{pool("p")},
			exist: []*karpenter.NodeClaim{
				sharing(of(planned("old", "p", "1"), "outbox/6", false), "x", "1"), sharing(of(planned("older", "p", "1"), "outbox/3", false), "y", "1"),
				sharing(of(planned("part", "p", "1"), "outbox/6", false), "z", "2"), of(planned("uncounted", "p", "1"), "outbox/6", false),
				sharing(of(planned("half", "p", "1"), "outbox/6", false), "v", "2"), sharing(of(planned("other-half", "p", "1"), "outbox/6", true), "v", "2"),
				sharing(of(planned("left", "p", "1"), "outbox/6", false), "w", "2"), going(sharing(of(planned("leaving", "p", "1"), "outbox/6", false), "w", "2")),
				of(planned("admitted", "p", "1"), "outbox/6", true), going(of(planned("going", "p", "1"), "outbox/6", false)),
				of(planned("later", "p", "1"), "outbox/8", false), of(planned("foreign", "p", "1"), "other/6", false),
				planned("by-hand", "p", "1"), of(planned("broken", "p", "1"), "outbox", false), of(planned("worse", "p", "1"), "outbox/x", false),
			},
			intents: []planning.PlannedIntent{intent("1", "p", "1", "a")},
			passed:  []string{"1"}, claims: []string{"a", "half", "old", "older"},
		}, {
			name:  "claims of an abandoned plan beyond limits, and one without the exceeded resource",
			pools: []*karpenter.NodePool{pool("p", "cpu", "3"), pool("q", "nvidia.com/gpu", "0"), priced},
			exist: []*karpenter.NodeClaim{
				sharing(of(planned("old", "p", "2"), "outbox/6", false), "x", "1"), launched("new", "p", "2"),
				sharing(of(planned("small", "q", "2"), "outbox/6", false), "y", "1"), withGPU("gpu", "q"),
				sharing(of(withMaxPrice("dear", "priced", 2_000_001), "outbox/6", false), "z", "1"),
			},
			claims: []string{"small"},
		}, {
			name:  "claims of an abandoned plan at the limits",
			pools: []*karpenter.NodePool{pool("p", "cpu", "4"), priced},
			exist: []*karpenter.NodeClaim{
				sharing(of(planned("old", "p", "2"), "outbox/6", false), "x", "1"), launched("new", "p", "2"),
				sharing(of(withMaxPrice("cheap", "priced", 2_000_000), "outbox/6", false), "z", "1"),
			},
			claims: []string{"cheap", "old"},
		}, {
			name: "empty plan",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := planning.Plan{Outbox: "outbox", Seq: 7, Intents: test.intents}
			got := admission.Admitter{Leaving: test.leaving}.AdmitPlan(plan, test.pools, test.exist)
			if diff := cmp.Diff(test.passed, got.Intents); diff != "" {
				t.Errorf("intents:\n%s", diff)
			}
			if diff := cmp.Diff(test.claims, got.Claims); diff != "" {
				t.Errorf("claims:\n%s", diff)
			}
			if len(got.Refused)+len(got.Intents) != len(test.intents) {
				t.Errorf("%d intents admitted and %d refused, of %d", len(got.Intents), len(got.Refused), len(test.intents))
			}
			if (test.reason != "") != (len(got.Refused) == 1) {
				t.Fatalf("refused: %+v", got.Refused)
			}
			if test.reason != "" && !strings.Contains(got.Refused[0].Reason, test.reason) {
				t.Errorf("the reason %q does not contain %q", got.Refused[0].Reason, test.reason)
			}
		})
	}
}

func TestClaimFootprint(t *testing.T) {
	broken := planned("x", "p", "1")
	broken.Annotations[launchspec.CeilingAnnotation] = "{"
	for name, test := range map[string]struct {
		claim *karpenter.NodeClaim
		want  corev1.ResourceList
	}{
		"launched":                {launched("x", "p", "3"), resources("cpu", "3", "nodes", "1")},
		"planned":                 {planned("x", "p", "5"), resources("cpu", "5", "nodes", "1")},
		"claim of another client": {&karpenter.NodeClaim{}, resources("nodes", "1")},
		"planned with a price": {func() *karpenter.NodeClaim {
			c := planned("x", "p", "5")
			c.Annotations[launchspec.CeilingAnnotation] = `{"cpu":"5","joist.sh/microdollars-per-hour":"96000"}`
			return c
		}(), resources("cpu", "5", "nodes", "1")},
		"invalid footprint annotation": {broken, resources("nodes", "1")},
		"footprint annotation with nodes": {func() *karpenter.NodeClaim {
			c := planned("x", "p", "5")
			c.Annotations[launchspec.CeilingAnnotation] = `{"nodes":"9"}`
			return c
		}(), resources("nodes", "1")},
	} {
		got := admission.Footprint(test.claim)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestBatchOf(t *testing.T) {
	for text, want := range map[string]bool{"uid/7": true, "uid/0": true, "": false, "uid": false, "uid/": false, "uid/-1": false, "uid/7/8": false} {
		outbox, seq, ok := admission.BatchOf(of(&karpenter.NodeClaim{}, text, false))
		if ok != want {
			t.Errorf("%q: %q, %d, %t", text, outbox, seq, ok)
		}
	}
}

// TestLargePlansAreAdmittedInPart plans more NodeClaims than are admitted at most, next to one that an earlier plan left behind. An outbox
// that lists the admitted ones must fit into a ConfigMap, also with the longest names.
func TestLargePlansAreAdmittedInPart(t *testing.T) {
	longest := strings.Repeat("n", 63)
	plan := planning.Plan{Outbox: "o", Seq: 8}
	for i := range admission.MaxClaims/50 + 1 {
		one := planning.PlannedIntent{ID: fmt.Sprint("i", i), NodePool: longest}
		for slot := range 50 {
			claim := planning.PlannedClaim{Ceiling: resources("cpu", "1")}
			claim.Object.Name = launchspec.ClaimName(longest, one.ID, slot)
			one.Claims = append(one.Claims, claim)
		}
		plan.Intents = append(plan.Intents, one)
	}
	got := admission.Admitter{}.AdmitPlan(plan, []*karpenter.NodePool{pool(longest)}, []*karpenter.NodeClaim{sharing(of(planned("left-behind", longest, "1"), "o/7", false), "old", "1")})
	if len(got.Claims) != admission.MaxClaims-49 || len(got.Refused) != 2 || !strings.Contains(got.Refused[0].Reason, "more than 5000 NodeClaims") {
		t.Errorf("%d claims admitted, refused: %v", len(got.Claims), got.Refused)
	}
	done := outbox.Outbox{Claims: got.Claims, UIDs: map[string]types.UID{}}
	for _, name := range got.Claims {
		done.UIDs[name] = "0b6d0c9e-8f6a-4e5e-9d0a-1c2b3d4e5f60"
	}
	text, err := json.Marshal(done)
	if err != nil || len(text) > corev1.MaxSecretSize-64<<10 {
		t.Errorf("the outbox has %d bytes (%v)", len(text), err)
	}
}
