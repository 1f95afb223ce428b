package launchspec_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// partitions returns for each intent the partition in its template, the partition label of its nodes, and what its
// NodeClaims require of the label.
func partitions(built launchspec.Built) []string {
	const key = karpenter.LabelPlacementGroupPartition
	var out []string
	for i, intent := range built.Intents {
		var labels []string
		for _, facts := range intent.Types {
			labels = append(labels, facts.Labels[key])
		}
		for _, claim := range built.Plan.Intents[i].Claims {
			required := "nothing"
			if values, stated := planning.NewNodeClaimRequirements(claim.Object.Spec.Requirements)[key]; stated {
				required = values.String()
			}
			out = append(out, fmt.Sprintf("template %d, label %q, required %s", intent.Templates[0].Placement.Partition, planning.SortUnique(labels), required))
		}
	}
	slices.Sort(out)
	return out
}

// TestPartitionsAreLaunched builds launches into a placement group with partitions. The next batch, before the launch,
// finds its pods on the NodeClaims.
func TestPartitionsAreLaunched(t *testing.T) {
	const key = karpenter.LabelPlacementGroupPartition
	none := func(*planning.PodSpec) {}
	for _, tt := range []struct {
		name string
		edit func(*planning.PodSpec)
		pool []string
		want []string
	}{
		{"EC2 chooses", none, nil, []string{`template 0, label [""], required nothing`}},
		{"a pod selects a partition", func(s *planning.PodSpec) { s.NodeSelector = map[string]string{key: "2"} }, nil, []string{`template 2, label ["2"], required In [2]`}},
		{"a pod needs any partition", func(s *planning.PodSpec) {
			term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
			}}
		}, nil, []string{`template 0, label [""], required Exists`}},
		{"pods spread over partitions", func(s *planning.PodSpec) {
			s.Labels = map[string]string{"app": "kafka"}
			s.Spread = []corev1.TopologySpreadConstraint{{
				TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: new(int32(3)), LabelSelector: &metav1.LabelSelector{MatchLabels: s.Labels},
			}}
		}, nil, []string{`template 1, label ["1"], required In [1]`, `template 2, label ["2"], required In [2]`, `template 3, label ["3"], required In [3]`}},
		{"the NodePool names partitions", none, []string{"6", "5"}, []string{`template 5, label ["5"], required In [5 6]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("kafka", 3, "100m", "100Mi", tt.edit))
			w.cat.PlacementGroups = []catalog.PlacementGroup{{ID: "pg-1", Name: "racks", Strategy: catalog.PartitionStrategy, Partitions: 7}}
			w.class().Spec.PlacementGroupSelector = &karpenter.PlacementGroupSelector{Name: new("racks")}
			if tt.pool != nil {
				w.require(append(w.pool().Spec.Template.Spec.Requirements, in(key, tt.pool...))...)
			}
			built := w.build(t)
			if diff := cmp.Diff(tt.want, partitions(built)); diff != "" {
				t.Error(diff)
			}
			verify(t, built, w.batch.Snapshot, w.cat)
			for _, intent := range built.Plan.Intents {
				for _, claim := range intent.Claims {
					object := claim.Object
					n := planning.Node{
						Name: object.Name, Claim: object.Name, NodePool: w.pool().Name, Labels: object.Labels,
						Requirements: object.Spec.Requirements, Allocatable: object.Spec.Resources.Requests,
					}
					for _, nomination := range built.Plan.Nominations {
						if nomination.Claim == object.Name {
							n.ExpectedPods = append(n.ExpectedPods, nomination.Pod.UID)
						}
					}
					w.batch.Snapshot.Nodes = append(w.batch.Snapshot.Nodes, n)
				}
			}
			if next := solver.Solve(w.batch, w.cat); len(next.Nodes) > 0 || len(next.Nominations) != 3 {
				t.Errorf("the next batch has %d new nodes and %d pods on NodeClaims, want none and 3", len(next.Nodes), len(next.Nominations))
			}
		})
	}
}
