package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/explain"
	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// readAudit reads exports of the audit log.
func readAudit(cmd *cobra.Command, names []string) (out trace.Entries, err error) {
	for _, name := range names {
		if err := addFile(cmd, name, trace.ReadLog, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addAudited compares the last decision about the node in the audit log. What cannot be compared is noted.
func (s *storedDecisions) addAudited(ctx context.Context, answer *explain.NodeExplanation) {
	if len(s.audit.Facts) == 0 {
		if answer.Proposal != "" && answer.Reproduction == nil {
			s.notes = append(s.notes, "the proposal has no recorded plan that could be compared: --log with an export of the audit log has its command")
		}
		return
	}
	facts := slices.Clone(s.audit.Facts)
	slices.SortStableFunc(facts, func(a, b event.Envelope) int { return b.Time.Compare(a.Time) })
	for i := range facts {
		if at := facts[i].Time; at.After(s.until.Add(writeLag)) || at.Before(s.until.Add(-s.since)) {
			continue
		}
		found, err := s.compareFact(ctx, &facts[i], answer.Claim)
		if err != nil {
			s.notes = append(s.notes, "the decision in message "+facts[i].ID+" of the audit log cannot be compared: "+err.Error())
			return
		}
		if found != nil {
			answer.Audited = found
			return
		}
	}
	s.notes = append(s.notes, fmt.Sprintf("the audit log has no decision about NodeClaim %s from %s until %s", answer.Claim, formatUTC(s.until.Add(-s.since)), formatUTC(s.until)))
}

// compareFact compares a fact with the decision that is made now; nil if it is not about the NodeClaim.
func (s *storedDecisions) compareFact(ctx context.Context, fact *event.Envelope, claim string) (*explain.AuditedDecision, error) {
	var proposed event.DisruptionProposed
	var kept event.NodesKept
	switch fact.Type {
	case event.DisruptionProposedType:
		if err := json.Unmarshal(fact.Data, &proposed); err != nil || !slices.Contains(proposed.Claims, claim) {
			return nil, err
		}
		snapshot, cat, err := s.readInputs(ctx, proposed.Snapshot)
		if err != nil {
			return nil, err
		}
		out, err := explain.CompareProposal(fact.ID, proposed, snapshot, cat)
		return &out, err
	case event.NodesKeptType:
		if err := json.Unmarshal(fact.Data, &kept); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(kept.Kept, func(k event.Kept) bool { return slices.Contains(k.Claims, claim) })
		if at < 0 {
			return nil, nil
		}
		snapshot, cat, err := s.readInputs(ctx, kept.Snapshot)
		if err != nil {
			return nil, err
		}
		out, err := explain.CompareKept(fact.ID, kept, kept.Kept[at], claim, snapshot, cat)
		return &out, err
	}
	return nil, nil
}

// readInputs reads a snapshot and its catalogue.
func (s *storedDecisions) readInputs(ctx context.Context, ref event.Ref) (planning.Snapshot, catalog.Catalogue, error) {
	snapshot, err := blob.Get[planning.Snapshot](ctx, s.archive.Store, ref)
	if err != nil {
		return snapshot, catalog.Catalogue{}, wrapDocument("reading "+ref.Key(), err)
	}
	cat, err := s.readCatalogue(ctx, snapshot.Catalogue)
	return snapshot, cat, err
}

// explainReplacement evaluates again the snapshot of a plan of replacements.
func (s *storedDecisions) explainReplacement(ctx context.Context, found recordedPlan, claim string) (explain.Launch, *explain.Reproduction, error) {
	snapshot, cat, err := s.readInputs(ctx, found.plan.Batch)
	if err != nil {
		return explain.Launch{}, nil, err
	}
	compared, _, err := explain.ReproduceReplacement(snapshot, cat, found.plan, found.entry.Ref, found.entry.Written)
	isReproduced := err == nil
	if !isReproduced && !fault.Is(err, fault.Missing) {
		return explain.Launch{}, nil, err
	}
	decision := explain.NewDecision(planning.Batch{Snapshot: snapshot}, instancetypes.New(snapshot, cat), found.plan, s.readIntents(ctx, &found.plan))
	launch, _ := decision.ExplainLaunch(claim)
	if !isReproduced {
		return launch, nil, nil
	}
	return launch, &compared, nil
}

// addConfirmation compares the plan of the node's confirmed proposal with the recorded one.
func (s *storedDecisions) addConfirmation(ctx context.Context, answer *explain.NodeExplanation) {
	found, isFound, err := s.findPlan(ctx, func(p *planning.Plan) bool { return p.Batch.Kind == planning.SnapshotKind })
	if err != nil || !isFound {
		return
	}
	if _, compared, err := s.explainReplacement(ctx, found, ""); err == nil {
		answer.Reproduction = compared
	}
}
