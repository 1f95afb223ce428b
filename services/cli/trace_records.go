package cli

import (
	"context"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// traceObject finds the messages and instances of an object in the documents.
type traceObject struct {
	archive   *records.DocumentArchive
	asked     object
	namespace string
}

// recordsWindow is how long before the traced period the plan of an object is looked for.
const recordsWindow = 24 * time.Hour

// addRecords adds the plans, launches and instances of the object to the query.
func (t traceObject) addRecords(ctx context.Context, query *trace.Query) error {
	claims := map[string]bool{}
	if t.asked.kind != "pod" {
		claims[t.asked.name] = true
		if err := t.findNode(ctx, query, claims, func(n *planning.Node) bool { return n.Name == t.asked.name || n.Claim == t.asked.name }); err != nil {
			return err
		}
	}
	plans, err := t.archive.List(ctx, planning.PlanKind, query.Since.Add(-recordsWindow), query.Until.Add(writeLag))
	if err != nil {
		return err
	}
	slices.Reverse(plans)
	err = records.Read(ctx, t.archive, plans, func(entry records.StoredDocument, plan planning.Plan) bool {
		if t.asked.kind == "pod" && hasPod(&plan, t.namespace, t.asked.name) {
			query.AddIDs(string(entry.Ref.Digest), string(plan.Batch.Digest))
			for _, n := range plan.Nominations {
				if n.Namespace == t.namespace && n.Pod.Name == t.asked.name && n.Claim != "" {
					claims[n.Claim] = true
				}
			}
		}
		return true
	}, func(records.StoredDocument, error) {})
	if err != nil {
		return err
	}
	if t.asked.kind == "pod" && len(claims) > 0 {
		if err := t.findNode(ctx, query, claims, func(n *planning.Node) bool { return claims[n.Claim] }); err != nil {
			return err
		}
	}
	return t.findLaunches(ctx, query, plans, claims)
}

// findNode adds the names of the nodes and instances that match in the snapshots.
func (t traceObject) findNode(ctx context.Context, query *trace.Query, claims map[string]bool, isWanted func(*planning.Node) bool) error {
	snapshots, err := t.archive.List(ctx, planning.SnapshotKind, query.Since.Add(-snapshotAgeMax), query.Until.Add(writeLag))
	if err != nil {
		return err
	}
	slices.Reverse(snapshots)
	return records.Read(ctx, t.archive, snapshots, func(_ records.StoredDocument, s planning.Snapshot) bool {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if !isWanted(n) {
				continue
			}
			if n.Claim != "" {
				claims[n.Claim] = true
			}
			query.AddNames(n.Name, n.Claim)
			query.AddInstance(n.Instance)
		}
		// All claims are found when each has an instance.
		return len(query.Instances) == 0 || len(query.Instances) < len(claims)
	}, func(records.StoredDocument, error) {})
}

// findLaunches adds the launches of the NodeClaims and the plans that contain them.
func (t traceObject) findLaunches(ctx context.Context, query *trace.Query, plans []records.StoredDocument, claims map[string]bool) error {
	return records.Read(ctx, t.archive, plans, func(entry records.StoredDocument, plan planning.Plan) bool {
		for _, intent := range plan.Intents {
			for _, claim := range intent.Claims {
				if claims[claim.Object.Name] {
					query.AddIntent(intent.ID)
					query.AddIDs(string(entry.Ref.Digest))
					query.AddNames(claim.Object.Name)
				}
			}
		}
		return true
	}, func(records.StoredDocument, error) {})
}
