package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/explain"
	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// momentsMax is the number of snapshots that a replay of a period uses: the last ones of equal parts.
const momentsMax = 48

// explainWith replays a decision or a period with other NodePools.
func explainWith(cmd *cobra.Command, env Env, flags explainFlags, asked object) error {
	documents, err := readManifests(cmd.InOrStdin(), flags.with, nil)
	if err != nil {
		return err
	}
	change, err := simulate.ReadChange(documents, nil)
	if err != nil {
		return err
	}
	stored, err := openDecisions(cmd, env, flags)
	if err != nil {
		return err
	}
	defer stored.shown.Stop()
	switch asked.kind {
	case "pod":
		answer, err := stored.explainPodWith(cmd.Context(), change, flags.namespace, asked.name)
		stored.shown.Stop()
		return printExplanation(cmd, flags.format, answer, err, explain.PrintPodWith)
	case "nodepool":
		answer, err := stored.replayPeriod(cmd.Context(), env, change)
		stored.shown.Stop()
		return printExplanation(cmd, flags.format, answer, err, report.PrintPeriod)
	}
	return usageError(errors.New("--with explains a pod (one past decision) or a nodepool (a past period)"), "joist simulate --pool-change FILE, which shows what happens to each node")
}

// explainPodWith plans a recorded batch with other NodePools, and compares both plans.
func (s *storedDecisions) explainPodWith(ctx context.Context, change simulate.Change, namespace, name string) (explain.PodWith, error) {
	found, isFound, err := s.findPlan(ctx, func(p *planning.Plan) bool { return isOfBatch(p) && hasPod(p, namespace, name) })
	if err != nil {
		return explain.PodWith{}, err
	}
	if !isFound {
		return explain.PodWith{}, fault.F("replaying the decision", fault.Missing, "pod %s/%s is in no plan from %s to %s", namespace, name, formatUTC(s.until.Add(-s.since)), formatUTC(s.until)).
			WithHint("look further back with --since 72h, or at another time with --at")
	}
	recorded, err := s.reproduce(ctx, found)
	if err != nil {
		return explain.PodWith{}, err
	}
	applied, err := change.Apply(recorded.Batch.Snapshot)
	if err != nil {
		return explain.PodWith{}, err
	}
	cat, err := s.readCatalogue(ctx, recorded.Batch.Snapshot.Catalogue)
	if err != nil {
		return explain.PodWith{}, err
	}
	batch := recorded.Batch
	batch.Snapshot = applied.Snapshot
	other := explain.DecideNow(batch, instancetypes.New(batch.Snapshot, cat))
	var changes []string
	for _, o := range applied.Objects {
		changes = append(changes, fmt.Sprintf("%s %s: %s", o.Kind, o.Name, o.Change))
	}
	return explain.ComparePod(recorded, &other, namespace, name, changes, append(applied.Assumptions, s.notes...))
}

// replayPeriod replays the snapshots of the period with other NodePools.
func (s *storedDecisions) replayPeriod(ctx context.Context, env Env, change simulate.Change) (simulate.Period, error) {
	moments, err := s.readMoments(ctx)
	if err != nil {
		return simulate.Period{}, err
	}
	options := consolidateOptions(env, s.shown, 0, false)
	options.Progress = func(done int, _ *scenario.Consolidation) {
		s.shown.updateCount(fmt.Sprintf("replaying %d snapshots", len(moments)), done)
	}
	// Only the last snapshot of each part is used, so two of them are further apart.
	out, err := change.ReplayPeriod(moments, s.until.Add(-s.since), s.until, snapshotAgeMax+s.since/momentsMax, options)
	out.Assumptions = append(out.Assumptions, s.notes...)
	return out, err
}

// readMoments reads the last snapshot of each part of the period, with its catalogue.
func (s *storedDecisions) readMoments(ctx context.Context) ([]simulate.Source, error) {
	from := s.until.Add(-s.since)
	entries, err := s.archive.List(ctx, planning.SnapshotKind, from, s.until.Add(writeLag))
	if err != nil {
		return nil, err
	}
	part := s.since / momentsMax
	var chosen []records.StoredDocument
	for i, entry := range entries {
		isLast := i+1 == len(entries) || entries[i+1].Written.Sub(from)/part != entry.Written.Sub(from)/part
		if isLast {
			chosen = append(chosen, entry)
		}
	}
	var out []simulate.Source
	catalogues := blob.DocumentCache[catalog.Catalogue]{}
	var failed error
	err = records.Read(ctx, s.archive, chosen, func(entry records.StoredDocument, snapshot planning.Snapshot) bool {
		if snapshot.TakenAt.After(s.until) || snapshot.Catalogue.IsZero() || snapshot.TakenAt.Before(from.Add(-time.Hour)) {
			return true
		}
		cat, err := catalogues.Get(ctx, s.archive.Store, snapshot.Catalogue)
		switch {
		case err != nil && (fault.Is(err, fault.Retry) || fault.Is(err, fault.Poison)):
			s.skipDocument(records.StoredDocument{Ref: snapshot.Catalogue}, err)
		case err != nil:
			failed = err
			return false
		default:
			out = append(out, simulate.SourceFromCatalogue(snapshot, cat))
		}
		return true
	}, s.skipDocument)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fault.F("replaying the period", fault.Missing, "%s has no snapshot from %s to %s", s.place, formatUTC(from), formatUTC(s.until)).
			WithHint("look further back with --since 24h or at another time with --at; the bucket keeps 30 days")
	}
	return out, nil
}
