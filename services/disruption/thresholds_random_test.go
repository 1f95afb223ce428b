package disruption

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// grow assigns the pods of a cluster to workloads and sets their ages.
func grow(t *rapid.T, s planning.Snapshot) {
	age := rapid.SampledFrom([]time.Duration{time.Minute, 50 * time.Minute, 2 * time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour})
	for i := range s.Nodes {
		s.Nodes[i].InitializedAt = fixture.Taken.Add(-24 * time.Hour)
		for k := range s.Nodes[i].Pods {
			class := &s.Nodes[i].Pods[k]
			created := fixture.Taken.Add(-age.Draw(t, "age"))
			for j := range class.Pods {
				class.Pods[j].Workload, class.Pods[j].Created = class.Spec.Labels["app"], created
			}
		}
	}
}

// tallied counts the pods of each app: all pods, pods that are at most an hour old or on nodes
// being removed, and pods that a command moves.
type tallied struct{ pods, young, moved map[string]int }

func (c tallied) count(n *node, moves bool) (youngest time.Duration) {
	youngest = 1000 * time.Hour
	for _, class := range n.Pods {
		app := class.Spec.Labels["app"]
		for _, pod := range class.Pods {
			age := fixture.Taken.Sub(pod.Created)
			switch {
			case moves:
				c.moved[app]++
				youngest = min(youngest, age)
			default:
				c.pods[app]++
				if age < time.Hour || n.MarkedForDeletion || n.Proposal != nil && !n.Proposal.ConfirmedAt.IsZero() {
					c.young[app]++
				}
			}
		}
	}
	return youngest
}

// In any cluster, consolidation keeps every threshold, and its commands satisfy the same invariants
// as without thresholds.
func TestThresholdsHoldInAnyCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCluster(t)
		grow(t, s)
		// Mostly set one threshold at a time, so that one cannot hide an error in another.
		one := rapid.SampledFrom([][2]string{
			{policy.MinSaving, "0.1"}, {policy.MinSavingPercent, "75%"}, {policy.Cooldown, "90m"}, {policy.EvictionsPerHour, "3"}, {policy.EvictionsPerHour, "25%"},
		})
		asks := map[string]string{}
		for range rapid.IntRange(1, 2).Draw(t, "thresholds") {
			asked := one.Draw(t, "threshold")
			asks[asked[0]] = asked[1]
		}
		s.NodePools[0].Annotations = asks
		p, err := policy.ReadConsolidation(asks)
		if err != nil {
			t.Fatal(err)
		}
		found := Evaluate(s, fixture.Stock(s), Options{})
		sound(t, s, found)
		seen := tallied{map[string]int{}, map[string]int{}, map[string]int{}}
		for i := range s.Nodes {
			seen.count(&s.Nodes[i], false)
		}
		for _, c := range found.Commands {
			youngest := 1000 * time.Hour
			for _, i := range c.Nodes {
				youngest = min(youngest, seen.count(&s.Nodes[i], true))
			}
			// Thresholds do not apply to a node without pods.
			if c.Method != MultiNode && c.Method != SingleNode || c.PodsMoved == 0 {
				continue
			}
			if price := c.SavedPerHour + c.Result.PricePerHour; c.SavedPerHour < p.MinSaving || c.SavedPerHour < p.MinSavingPart*price-1e-9 {
				t.Fatalf("%s saves $%v of $%v an hour", describeFindings(s, c), c.SavedPerHour, price)
			}
			if youngest < p.Cooldown || p.EvictionsPerHour.IsSet() && youngest < time.Hour {
				t.Fatalf("%s moves a pod that is %s old", describeFindings(s, c), youngest)
			}
			if !p.EvictionsPerHour.IsSet() {
				continue
			}
			for app, moved := range seen.moved {
				if most := p.EvictionsPerHour.CountOf(seen.pods[app]); moves(s, c, app) && seen.young[app]+moved > most {
					t.Fatalf("%s: %d pods of %s move after %d, the limit is %d", describeFindings(s, c), moved, app, seen.young[app], most)
				}
			}
		}
	})
}

// moves reports whether a command moves pods of an app.
func moves(s planning.Snapshot, c Command, app string) bool {
	for _, i := range c.Nodes {
		for _, class := range s.Nodes[i].Pods {
			if class.Spec.Labels["app"] == app {
				return true
			}
		}
	}
	return false
}
