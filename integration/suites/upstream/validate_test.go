package upstream

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// drawer draws pools that are mostly valid, with few errors each, so that every rule
// decides some pools alone.
type drawer struct{ *rand.Rand }

func (d drawer) of(good, bad []string) string {
	if d.IntN(12) == 0 {
		return bad[d.IntN(len(bad))]
	}
	return good[d.IntN(len(good))]
}

func (d drawer) key() string {
	return d.of([]string{
		"team", "example.com/team", "kubernetes.io/arch", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-tenancy",
		"karpenter.k8s.aws/instance-cpu", "beta.kubernetes.io/arch", "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone",
		"node.kubernetes.io/instance-type", "notkarpenter.sh/x", "topology.k8s.aws/zone-id",
	}, []string{
		"", "a b", "-x", "x/", "/x", "a/b/c", "kubernetes.io/hostname", "karpenter.sh/nodepool", "karpenter.sh/team", "sub.karpenter.sh/team", "karpenter.k8s.aws/colour",
		"karpenter.k8s.aws/ec2nodeclass", "Example.com/team", "karpenter.sh/initialized", "a123456789b123456789c123456789d123456789e123456789f123456789g1234",
	})
}

func (d drawer) value() string {
	return d.of([]string{"a", "spot", "on-demand", "reserved", "default", "dedicated", "1", "4", "0", "amd64", "", "A_b.c"},
		[]string{"a b", "-", "x/y", "-1", "1.5", "spott", "host", "99999999999999999999", "a123456789b123456789c123456789d123456789e123456789f123456789g1234"})
}

func (d drawer) values(most int) []string {
	out := make([]string, d.IntN(most+1))
	for i := range out {
		out[i] = d.value()
	}
	return out
}

func (d drawer) taints() []corev1.Taint {
	out := make([]corev1.Taint, d.IntN(3))
	for i := range out {
		out[i] = corev1.Taint{
			Key:    d.of([]string{"gpu", "example.com/gpu", "a", "b", "c", "d"}, []string{"", "a b", "x/"}),
			Value:  d.of([]string{"", "", "true", "a/b"}, []string{"a b", "-"}),
			Effect: corev1.TaintEffect(d.of([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, []string{"NoRun", "noschedule"})),
		}
	}
	return out
}

func (d drawer) pool() *karpv1.NodePool {
	pool := &karpv1.NodePool{}
	template := &pool.Spec.Template
	template.Labels = map[string]string{}
	for range d.IntN(3) {
		template.Labels[d.key()] = d.value()
	}
	template.Spec.Taints, template.Spec.StartupTaints = d.taints(), d.taints()
	for range d.IntN(4) {
		operator := d.of([]string{"In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}, []string{"", "in", "Near"})
		r := karpv1.NodeSelectorRequirementWithMinValues{Key: d.key(), Operator: corev1.NodeSelectorOperator(operator)}
		switch operator {
		case "Gt", "Lt", "Gte", "Lte":
			r.Values = []string{d.of([]string{"0", "4", "100"}, []string{"-1", "x", "1.5", ""})}
			if d.IntN(10) == 0 {
				r.Values = d.values(2)
			}
		default:
			r.Values = d.values(3)
		}
		if d.IntN(4) == 0 {
			least := 1 + d.IntN(2)
			r.MinValues = &least
		}
		template.Spec.Requirements = append(template.Spec.Requirements, r)
	}
	return pool
}

// Joist rejects exactly the pools that upstream rejects at run time, so that changing the
// autoscaler does not change a pool's readiness.
func TestSameValidation(t *testing.T) {
	const pools = 20000
	counts := map[bool]int{}
	for seed := range uint64(pools) {
		theirs := drawer{rand.New(rand.NewPCG(seed, 17))}.pool()
		var ours karpenter.NodePool
		decode(t, encode(t, theirs), &ours)
		errs, want := ours.Validate(), theirs.RuntimeValidate(t.Context())
		if (len(errs) == 0) != (want == nil) {
			t.Fatalf("seed %d: Joist %v, upstream %v, for %s", seed, errs, want, encode(t, theirs))
		}
		counts[want == nil]++
	}
	if counts[true] < pools/10 || counts[false] < pools/10 {
		t.Errorf("the pools are too similar: %s", fmt.Sprint(counts))
	}
	t.Logf("%d pools are valid and %d are invalid", counts[true], counts[false])
}
