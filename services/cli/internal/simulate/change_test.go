package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// twoNodes returns two nodes with one pod each, in two zones.
func twoNodes(t *testing.T) simulate.Source {
	t.Helper()
	node := func(name, zone string) string {
		return fmt.Sprintf(`{"name": "%s", "nodePool": "web", "instanceType": "m", "zone": "%s", "capacityType": "on-demand", "pods": [
			{"metadata": {"name": "pod-%s"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}]}`, name, zone, name)
	}
	offers := func(price float64) string {
		return fmt.Sprintf(`[{"zone": "z1", "capacityType": "on-demand", "price": %g, "available": true}, {"zone": "z2", "capacityType": "on-demand", "price": %g, "available": true},
			{"zone": "z1", "capacityType": "spot", "price": %g, "available": true}]`, price, price, price/4)
	}
	text := fmt.Sprintf(`{"name": "shop", "instanceTypes": [
		{"name": "m", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "4", "memory": "16Gi", "pods": "20"}, "offerings": %s},
		{"name": "n", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "4", "memory": "16Gi", "pods": "20"}, "offerings": %s}],
		"nodes": [%s, %s], "nodePools": [%s]}`, offers(0.4), offers(0.5), node("a", "z1"), node("b", "z2"), poolJSON("web", ""))
	s, err := scenario.Parse(nil, "shop.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return simulate.SourceFromScenario(&s)
}

// poolJSON returns a NodePool of on-demand nodes, with labels in its template and edits of its
// text.
func poolJSON(name, labels string, edits ...string) string {
	text := `{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "NAME"}, "spec": {
		"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "1"}]},
		"template": {"metadata": {"labels": {LABELS}}, "spec": {"expireAfter": "Never", "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
			"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}}}}`
	text = strings.NewReplacer(append([]string{"NAME", name, "LABELS", labels}, edits...)...).Replace(text)
	return text
}

const classJSON = `{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {
	"amiFamily": "AL2023", "userData": "echo", "role": "nodes", "amiSelectorTerms": [{"alias": "al2023@latest"}], "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}}`

// readChange reads a change.
func readChange(t *testing.T, gone []string, texts ...string) (simulate.Change, error) {
	t.Helper()
	documents, err := manifest.Read("f.yaml", []byte(strings.Join(texts, "\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	return simulate.ReadChange(documents, gone)
}

func newOptions() simulate.ConsolidateOptions {
	return simulate.ConsolidateOptions{
		Now: time.Now, Progress: func(int, *scenario.Consolidation) {},
		Decide: func(s planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Evaluate(s, stock, disruption.Options{})
		},
	}
}

// summarizeChange formats a result in a few lines.
func summarizeChange(a simulate.ChangeResult) []string {
	var out []string
	for _, o := range a.Changes {
		out = append(out, fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.Change))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Drifted)) {
		out = append(out, name+" drifts: "+a.Drifted[name])
	}
	for _, r := range a.Rounds {
		var came []string
		for _, n := range r.Replacements {
			came = append(came, fmt.Sprintf("%s %s %s of %s", n.InstanceType, n.Zone, n.CapacityType, n.NodePool))
		}
		out = append(out, fmt.Sprintf("%s: %v for %v, %d moved, %.2f", r.Method, r.Removed, came, r.PodsMoved, r.CostAfter))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Kept)) {
		rule, _, _ := strings.Cut(a.Kept[name], ":")
		out = append(out, name+" stays: "+rule)
	}
	for _, pod := range slices.Sorted(maps.Keys(a.Unscheduled)) {
		out = append(out, pod+" is lost")
	}
	return append(out, fmt.Sprintf("%d nodes at %.2f became %d at %.2f, %d moved; without it %d at %.2f", a.Nodes, a.CostBefore, a.NodesAfter, a.CostAfter, a.PodsMoved, a.Without.NodesAfter, a.Without.CostAfter))
}

func TestSimulateChange(t *testing.T) {
	still := "2 nodes at 0.80 became 2 at 0.80, 0 moved; without it 2 at 0.80"
	for _, tt := range []struct {
		name string
		gone []string
		text []string
		want []string
	}{
		{"nothing changes", nil, []string{poolJSON("web", "")}, []string{"NodePool web unchanged", still}},
		{"a missing default", nil, []string{strings.Replace(poolJSON("web", ""), `"expireAfter": "Never", `, "", 1)}, []string{"NodePool web unchanged", still}},
		{"a field outside the template", nil, []string{poolJSON("web", "", `"budgets": [{"nodes": "1"}]`, `"budgets": [{"nodes": "2"}]`)}, []string{"NodePool web changed", still}},
		{"a new label: all nodes are replaced within the budget", nil, []string{poolJSON("web", `"team": "x"`)}, []string{
			"NodePool web changed", "a drifts: NodePoolDrifted", "b drifts: NodePoolDrifted",
			"drift: [a] for [m z1 on-demand of web], 1 moved, 0.80", "drift: [b] for [m z1 on-demand of web], 1 moved, 0.80",
			"2 nodes at 0.80 became 2 at 0.80, 2 moved; without it 2 at 0.80",
		}},
		{"another type that costs more", nil, []string{poolJSON("web", "", `"requirements": [`, `"requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["n"]}, `)}, []string{
			"NodePool web changed", "a drifts: RequirementsDrifted", "b drifts: RequirementsDrifted",
			"drift: [a] for [n z1 on-demand of web], 1 moved, 0.90", "drift: [b] for [n z1 on-demand of web], 1 moved, 1.00",
			"2 nodes at 0.80 became 2 at 1.00, 2 moved; without it 2 at 0.80",
		}},
		{"a removed zone", nil, []string{poolJSON("web", "", `"requirements": [`, `"requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z2"]}, `)}, []string{
			"NodePool web changed", "a drifts: RequirementsDrifted", "drift: [a] for [m z2 on-demand of web], 1 moved, 0.80",
			"2 nodes at 0.80 became 2 at 0.80, 1 moved; without it 2 at 0.80",
		}},
		{"no offering", nil, []string{poolJSON("web", "", `"requirements": [`, `"requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}, `)}, []string{
			"NodePool web changed", "a drifts: RequirementsDrifted", "b drifts: RequirementsDrifted", "a stays: pods-unplaceable", "b stays: pods-unplaceable", still,
		}},
		{"no budget", nil, []string{poolJSON("web", `"team": "x"`, `[{"nodes": "1"}]`, `[{"nodes": "0"}]`)}, []string{
			"NodePool web changed", "a drifts: NodePoolDrifted", "b drifts: NodePoolDrifted", "a stays: budget", "b stays: budget", still,
		}},
		{"spot allowed: no drift, but consolidation", nil, []string{poolJSON("web", "", `["on-demand"]`, `["on-demand", "spot"]`)}, []string{
			"NodePool web changed", "single: [a] for [m z1 spot of web], 1 moved, 0.50", "single: [b] for [m z1 spot of web], 1 moved, 0.20",
			"2 nodes at 0.80 became 2 at 0.20, 2 moved; without it 2 at 0.80",
		}},
		{"another pool", nil, []string{poolJSON("more", "", `["on-demand"]`, `["spot"]`)}, []string{
			"NodePool more created", "single: [a] for [m z1 spot of more], 1 moved, 0.50", "single: [b] for [m z1 spot of more], 1 moved, 0.20",
			"2 nodes at 0.80 became 2 at 0.20, 2 moved; without it 2 at 0.80",
		}},
		{"the only pool is deleted", []string{"web"}, nil, []string{
			"NodePool web deleted", "deletion: [a b] for [], 0 moved, 0.00", "default/pod-a is lost", "default/pod-b is lost",
			"2 nodes at 0.80 became 0 at 0.00, 0 moved; without it 2 at 0.80",
		}},
		{"replaced by another pool", nil, []string{poolJSON("other", ""), strings.Replace(poolJSON("web", ""), `"name": "web"`, `"name": "web", "deletionTimestamp": "2026-11-20T12:00:00Z"`, 1)}, []string{
			"NodePool other created", "NodePool web deleted", "deletion: [a b] for [m z1 on-demand of other m z1 on-demand of other], 2 moved, 0.80",
			"2 nodes at 0.80 became 2 at 0.80, 2 moved; without it 2 at 0.80",
		}},
		{"the class", nil, []string{classJSON}, []string{
			"EC2NodeClass default changed", "a drifts: NodeClassDrift", "b drifts: NodeClassDrift",
			"drift: [a] for [m z1 on-demand of web], 1 moved, 0.80", "drift: [b] for [m z1 on-demand of web], 1 moved, 0.80",
			"2 nodes at 0.80 became 2 at 0.80, 2 moved; without it 2 at 0.80",
		}},
		{"an unused class", nil, []string{strings.Replace(classJSON, `"name": "default"`, `"name": "other"`, 1)}, []string{"EC2NodeClass other created", still}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := readChange(t, tt.gone, tt.text...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Simulate(twoNodes(t), newOptions())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, summarizeChange(got)); diff != "" || !got.Complete {
				t.Errorf("complete %v (-want +got):\n%s", got.Complete, diff)
			}
		})
	}
}

// TestChangeKeepsEarlierDrift: recorded drift stays unless the change concerns it.
func TestChangeKeepsEarlierDrift(t *testing.T) {
	from := twoNodes(t)
	from.Snapshot.Nodes = slices.Clone(from.Snapshot.Nodes)
	since := from.Snapshot.TakenAt.Add(-time.Hour)
	from.Snapshot.NodeClasses[0].Status.AMIs = []karpenter.AMI{{ID: "ami-new"}}
	drifts := func(i int, reason, image string) {
		from.Snapshot.Nodes[i].Drift, from.Snapshot.Nodes[i].Image = &planning.Drift{Reason: reason, Since: since}, image
	}
	for _, tt := range []struct {
		name, reason, image string
		text                string
		want                string
	}{
		{"an earlier template", "NodePoolDrifted", "ami-new", poolJSON("web", "", `"nodes": "1"`, `"nodes": "2"`), "NodePoolDrifted"},
		{"another subnet, which is not known here", "SubnetDrift", "ami-new", poolJSON("web", "", `"nodes": "1"`, `"nodes": "2"`), "SubnetDrift"},
		{"an old image", "AMIDrift", "ami-old", poolJSON("web", "", `"nodes": "1"`, `"nodes": "2"`), "AMIDrift"},
		{"an old image that the class has again", "AMIDrift", "ami-old", strings.Replace(classJSON, `"spec"`, `"status": {"amis": [{"id": "ami-old", "requirements": []}], "subnets": [{"id": "s", "zone": "z1"}]}, "spec"`, 1), "NodeClassDrift"},
		{"requirements that hold again", "RequirementsDrifted", "ami-new", poolJSON("web", "", `"nodes": "1"`, `"nodes": "2"`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			drifts(0, tt.reason, tt.image)
			c, err := readChange(t, nil, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Apply(from.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			got := a.Snapshot.Nodes[0].Drift
			if (got == nil) != (tt.want == "") || got != nil && (got.Reason != tt.want || !got.Since.Equal(since)) {
				t.Errorf("drift %+v, want %q", got, tt.want)
			}
			if a.Drifted["a"] != "" {
				t.Error("earlier drift is reported as new")
			}
			if from.Snapshot.Nodes[0].Drift.Reason != tt.reason {
				t.Error("the snapshot itself was changed")
			}
		})
	}
}

// TestChangeListsAssumptions: the result lists assumed values.
func TestChangeListsAssumptions(t *testing.T) {
	c, err := readChange(t, []string{"web"}, classJSON, strings.Replace(classJSON, `"name": "default"`, `"name": "other"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Apply(twoNodes(t).Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"the changed amiSelectorTerms, securityGroupSelectorTerms, subnetSelectorTerms of EC2NodeClass", "EC2NodeClass other resolves to", "the nodes of NodePool web are removed at once"} {
		if i >= len(a.Assumptions) || !strings.Contains(a.Assumptions[i], want) {
			t.Fatalf("assumptions %q lack %q", a.Assumptions, want)
		}
	}
}

func TestReadChangeErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		gone []string
		text []string
		want string
		hint string
	}{
		{"nothing", nil, nil, "the files have no NodePool and no EC2NodeClass", "changed NodePools"},
		{"a pod", nil, []string{`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}}`}, "f.yaml:1:1: Pod is neither", "remove it from the file"},
		{"a pool twice", nil, []string{poolJSON("web", ""), poolJSON("web", "")}, "duplicate NodePool web", "remove one"},
		{"a class twice", nil, []string{classJSON, classJSON}, "duplicate EC2NodeClass default", "remove one"},
		{"changed and deleted", []string{"web"}, []string{poolJSON("web", "")}, "NodePool web is both changed and deleted", "--pool-delete"},
		{"a class with a deletion timestamp", nil, []string{strings.Replace(classJSON, `"name"`, `"deletionTimestamp": "2026-11-20T12:00:00Z", "name"`, 1)}, "EC2NodeClass default has a deletion timestamp", "NodePools"},
		{"a pool that is not there", []string{"db"}, nil, "NodePool db to delete not found", "existing NodePool"},
		{"a missing class", nil, []string{strings.Replace(poolJSON("web", ""), `"name": "default"`, `"name": "none"`, 1)}, "NodePool web refers to an EC2NodeClass", "add the EC2NodeClass"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := readChange(t, tt.gone, tt.text...)
			if err == nil {
				_, err = c.Apply(twoNodes(t).Snapshot)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.FindHint(err), tt.hint) || !fault.Is(err, fault.Invalid, fault.Missing) {
				t.Errorf("%v", err)
			}
		})
	}
}
