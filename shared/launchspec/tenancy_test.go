package launchspec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// tenancies returns for each intent the tenancy in its template and the pods of its NodeClaims. It
// checks that the labels of the NodeClaims match the template.
func tenancies(t *testing.T, built launchspec.Built) []string {
	t.Helper()
	var out []string
	for i, intent := range built.Intents {
		tenancy := "default"
		if p := intent.Templates[0].Placement; p != nil {
			tenancy = p.Tenancy
		}
		for name, facts := range intent.Types {
			if got := facts.Labels[karpenter.LabelInstanceTenancy]; got != tenancy {
				t.Errorf("nodes of type %s get the tenancy label %q, but the template has %s", name, got, tenancy)
			}
		}
		for _, claim := range built.Plan.Intents[i].Claims {
			if got, labelled := claim.Object.Labels[karpenter.LabelInstanceTenancy]; labelled && got != tenancy {
				t.Errorf("the claim has the tenancy label %q, but the template has %s", got, tenancy)
			}
			var pods []string
			for _, n := range built.Plan.Nominations {
				if n.Claim == claim.Object.Name {
					pods = append(pods, n.Pod.Name)
				}
			}
			out = append(out, tenancy+": "+strings.Join(slices.Sorted(slices.Values(pods)), " "))
		}
	}
	slices.Sort(out)
	return out
}

func TestTenancy(t *testing.T) {
	wants := func(tenancy string) func(*planning.PodSpec) {
		return func(p *planning.PodSpec) {
			p.NodeSelector = map[string]string{karpenter.LabelInstanceTenancy: tenancy}
		}
	}
	pods := planningtest.NewPods
	plain, small := pods("plain", 1, "500m", "512Mi"), pods("small", 1, "100m", "64Mi")
	dedicated, shared := pods("dedicated", 1, "500m", "512Mi", wants("dedicated")), pods("shared", 1, "500m", "512Mi", wants("default"))
	large := pods("large", 1, "3500m", "8Gi")
	for _, tt := range []struct {
		name string
		pool []string
		pods []planning.PodClass
		want []string
	}{
		{"no requirement", nil, []planning.PodClass{plain, small}, []string{"default: plain-0 small-0"}},
		{"a pod requires dedicated", nil, []planning.PodClass{dedicated}, []string{"dedicated: dedicated-0"}},
		{"pods require both", nil, []planning.PodClass{dedicated, shared}, []string{"dedicated: dedicated-0", "default: shared-0"}},
		{"other pods share dedicated nodes", nil, []planning.PodClass{dedicated, small}, []string{"dedicated: dedicated-0 small-0"}},
		{"other pods do not create dedicated nodes", nil, []planning.PodClass{dedicated, large}, []string{"dedicated: dedicated-0", "default: large-0"}},
		{"the pool requires dedicated", []string{"dedicated"}, []planning.PodClass{plain, dedicated}, []string{"dedicated: dedicated-0 plain-0"}},
		{"the pool allows both", []string{"dedicated", "default"}, []planning.PodClass{plain}, []string{"default: plain-0"}},
		{"the pool allows both and a pod requires dedicated", []string{"dedicated", "default"}, []planning.PodClass{dedicated, shared}, []string{"dedicated: dedicated-0", "default: shared-0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(tt.pods...)
			if tt.pool != nil {
				w.require(append(w.pool().Spec.Template.Spec.Requirements, in(karpenter.LabelInstanceTenancy, tt.pool...))...)
			}
			if err := planningtest.CheckResult(w.batch, w.cat, solver.Solve(w.batch, w.cat)); err != nil {
				t.Error(err)
			}
			built := w.build(t)
			if diff := cmp.Diff(tt.want, tenancies(t, built)); diff != "" {
				t.Error(diff)
			}
			_, stated := planning.NewNodeClaimRequirements(built.Plan.Intents[0].Claims[0].Object.Spec.Requirements)[karpenter.LabelInstanceTenancy]
			if asked := tt.name != "no requirement"; stated != asked {
				t.Errorf("the claim has a tenancy requirement: %t", stated)
			}
		})
	}
}

// TestTenancyLeftOpen checks that if some pod asks for dedicated nodes, other pods still get nodes
// with default tenancy, unless those would run other daemons than the pods were planned with.
func TestTenancyLeftOpen(t *testing.T) {
	selecting := func(tenancy string) func(*planning.PodSpec) {
		return func(p *planning.PodSpec) {
			p.NodeSelector = map[string]string{karpenter.LabelInstanceTenancy: tenancy}
		}
	}
	for daemon, want := range map[string]string{"": "default", "default": "dedicated", "dedicated": "default"} {
		w := newWorld(planningtest.NewPods("dedicated", 1, "500m", "512Mi", selecting("dedicated")), planningtest.NewPods("large", 1, "3500m", "8Gi"))
		if daemon != "" {
			w.batch.Snapshot.DaemonSets = []planning.PodSpec{planningtest.NewPods("agent", 1, "100m", "64Mi", selecting(daemon)).Spec}
		}
		built := w.build(t)
		if got := tenancies(t, built); !slices.Contains(got, want+": large-0") {
			t.Errorf("with a daemon on nodes of tenancy %q: %v, want %s for large-0", daemon, got, want)
		}
		for _, intent := range built.Plan.Intents {
			reqs := planning.NewNodeClaimRequirements(intent.Claims[0].Object.Spec.Requirements)
			if tenancy, single := reqs[karpenter.LabelInstanceTenancy].SingleValue(); !single {
				t.Errorf("with a daemon on nodes of tenancy %q, the tenancy of a claim is open: %s", daemon, tenancy)
			}
		}
	}
}

// TestImpossibleTenancy checks that an impossible tenancy is not launched as another one.
func TestImpossibleTenancy(t *testing.T) {
	asks := func(p *planning.PodSpec) {
		p.NodeSelector = map[string]string{karpenter.LabelInstanceTenancy: "dedicated"}
	}
	for name, c := range map[string]struct{ pool, pod string }{"host": {pool: "host"}, "the pool forbids it": {pool: "default", pod: "dedicated"}} {
		class := planningtest.NewPods("web", 1, "500m", "512Mi")
		if c.pod != "" {
			asks(&class.Spec)
		}
		w := newWorld(class)
		w.require(append(w.pool().Spec.Template.Spec.Requirements, in(karpenter.LabelInstanceTenancy, c.pool))...)
		if got := solver.Solve(w.batch, w.cat); len(got.Nodes) > 0 || len(got.Unplaced) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDaemonsByTenancy checks that a daemon that selects the default tenancy is only counted on nodes
// with that tenancy.
func TestDaemonsByTenancy(t *testing.T) {
	for tenancy, want := range map[string]string{"default": "600m", "dedicated": "500m"} {
		w := newWorld(planningtest.NewPods("web", 1, "500m", "512Mi"))
		w.require(append(w.pool().Spec.Template.Spec.Requirements, in(karpenter.LabelInstanceTenancy, tenancy))...)
		daemon := planningtest.NewPods("agent", 1, "100m", "64Mi").Spec
		daemon.NodeSelector = map[string]string{karpenter.LabelInstanceTenancy: "default"}
		w.batch.Snapshot.DaemonSets = []planning.PodSpec{daemon}
		got := w.build(t).Plan.Intents[0].Claims[0].Object.Spec.Resources.Requests[corev1.ResourceCPU]
		if got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s: cpu requests of the claim = %s, want %s", tenancy, got.String(), want)
		}
	}
}
