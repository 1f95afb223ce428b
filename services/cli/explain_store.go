package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/explain"
	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// writeLag is how long after a decision its documents may still be written.
const writeLag = 10 * time.Second

// storedDecisions finds decisions in the bucket of the services.
type storedDecisions struct {
	archive *records.DocumentArchive
	place   string
	// until is the time of the decisions: now, or --at. isPast reports whether it is --at.
	until  time.Time
	isPast bool
	since  time.Duration
	// audit are the facts of the given audit log.
	audit trace.Entries
	// shown is the progress, which the caller of openDecisions stops.
	shown *progress
	// notes are about missing and damaged documents.
	notes []string
}

// explainRecorded explains a recorded decision.
func explainRecorded(cmd *cobra.Command, env Env, flags explainFlags, asked object) error {
	stored, err := openDecisions(cmd, env, flags)
	if err != nil {
		return err
	}
	defer stored.shown.Stop()
	ctx := cmd.Context()
	if err := stored.noteLostDays(ctx); err != nil {
		return err
	}
	switch asked.kind {
	case "pod":
		answer, err := stored.explainPod(ctx, flags.namespace, asked.name)
		answer.Notes = append(answer.Notes, stored.notes...)
		stored.shown.Stop()
		return printExplanation(cmd, flags.format, answer, err, explain.PrintPod)
	case "nodepool":
		answer, err := stored.explainNodePool(ctx, asked.name)
		answer.Notes = append(answer.Notes, stored.notes...)
		stored.shown.Stop()
		return printExplanation(cmd, flags.format, answer, err, explain.PrintNodePool)
	default:
		answer, err := stored.explainNode(ctx, asked.name)
		answer.Notes = append(answer.Notes, stored.notes...)
		stored.shown.Stop()
		return printExplanation(cmd, flags.format, answer, err, explain.PrintNode)
	}
}

func openDecisions(cmd *cobra.Command, env Env, flags explainFlags) (*storedDecisions, error) {
	if flags.since <= 0 {
		return nil, usageError(fmt.Errorf("invalid --since %s: it must be above 0", flags.since), "--since 24h")
	}
	until, err := parseTime(firstNonEmpty(flags.at, flags.until), env.Now())
	if err != nil {
		return nil, err
	}
	if flags.from != "" {
		from, err := parseTime(flags.from, env.Now())
		if err != nil {
			return nil, err
		}
		if flags.since = until.Sub(from); flags.since <= 0 {
			return nil, usageError(fmt.Errorf("--from %s is not before %s", formatUTC(from), formatUTC(until)), "--from 2026-11-20 --until 2026-11-21, which is one day in UTC")
		}
	}
	audit, err := readAudit(cmd, flags.logs)
	if err != nil {
		return nil, err
	}
	store, err := flags.nodes.openStore(cmd.Context(), env)
	if err != nil {
		return nil, err
	}
	shown := startProgress(cmd, "reading the documents of %s", flags.nodes.store)
	archive, err := records.Open(store, shown.updateCount)
	if err != nil {
		shown.Stop()
		return nil, err
	}
	return &storedDecisions{archive: archive, shown: shown, place: flags.nodes.store, until: until, isPast: flags.at+flags.until != "", since: flags.since, audit: audit}, nil
}

// parseTime parses a time, or a duration before now; empty is now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usageError(fmt.Errorf("invalid time %q", text), "a time in UTC such as 2026-11-20T03:00:00Z, or an age such as 90m")
}

// recordedPlan is a plan with its documents.
type recordedPlan struct {
	entry records.StoredDocument
	plan  planning.Plan
}

// noteLostDays notes the times of the period, before its last snapshot, of which the archive lost the snapshots.
func (s *storedDecisions) noteLostDays(ctx context.Context) error {
	entries, err := s.archive.List(ctx, planning.SnapshotKind, s.until.Add(-blob.Retention), s.until.Add(writeLag))
	if err != nil {
		return err
	}
	var times []time.Time
	for _, entry := range entries {
		times = append(times, entry.Written)
	}
	if len(times) == 0 {
		return nil
	}
	for _, g := range simulate.FindGaps(times, s.until.Add(-s.since), times[len(times)-1], snapshotAgeMax) {
		days := ""
		if len(g.Days) > 0 {
			days = " (lost days: " + strings.Join(g.Days, ", ") + ")"
		}
		s.notes = append(s.notes, fmt.Sprintf("the archive has no snapshot from %s until %s%s: decisions of this time are missing, and the rest is answered", formatUTC(g.From), formatUTC(g.Until), days))
	}
	return nil
}

// findPlan returns the newest plan of a batch that matches; false if none of the period does.
func (s *storedDecisions) findPlan(ctx context.Context, isWanted func(*planning.Plan) bool) (found recordedPlan, isFound bool, err error) {
	entries, err := s.archive.List(ctx, planning.PlanKind, s.until.Add(-s.since), s.until.Add(writeLag))
	if err != nil {
		return found, false, err
	}
	slices.Reverse(entries)
	err = records.Read(ctx, s.archive, entries, func(entry records.StoredDocument, plan planning.Plan) bool {
		if isFound = isWanted(&plan); isFound {
			found = recordedPlan{entry, plan}
		}
		return !isFound
	}, s.skipDocument)
	return found, isFound, err
}

// skipDocument notes a document that cannot be read.
func (s *storedDecisions) skipDocument(entry records.StoredDocument, err error) {
	what := "has expired"
	if fault.Is(err, fault.Poison) {
		what = "was changed or damaged, and is not used: " + err.Error()
	}
	s.notes = append(s.notes, entry.Ref.Key()+" "+what)
}

// isOfBatch reports whether a plan answers a batch, and is not one of disruption's.
func isOfBatch(p *planning.Plan) bool { return p.Batch.Kind == planning.BatchKind }

// explainPod explains the last plan with the pod. Without one, it explains the pod on its node.
func (s *storedDecisions) explainPod(ctx context.Context, namespace, name string) (explain.PodExplanation, error) {
	var newest *recordedPlan
	found, isFound, err := s.findPlan(ctx, func(p *planning.Plan) bool {
		if isOfBatch(p) && newest == nil {
			newest = &recordedPlan{plan: *p}
		}
		return isOfBatch(p) && hasPod(p, namespace, name)
	})
	if err != nil {
		return explain.PodExplanation{}, err
	}
	if isFound {
		decision, err := s.reproduce(ctx, found)
		if err != nil {
			return explain.PodExplanation{}, err
		}
		answer, err := decision.ExplainPod(namespace, name)
		if err != nil {
			return answer, err
		}
		return answer, s.addPodLaunch(ctx, &answer)
	}
	return s.explainUnplannedPod(ctx, newest, namespace, name)
}

// hasPod reports whether a plan nominates a pod, or has it unplaced.
func hasPod(p *planning.Plan, namespace, name string) bool {
	isPod := func(pod planning.PodRef) bool { return pod.Name == name }
	return slices.ContainsFunc(p.Nominations, func(n planning.Nomination) bool { return n.Namespace == namespace && n.Pod.Name == name }) ||
		slices.ContainsFunc(p.Unplaced, func(u planning.UnplacedPods) bool {
			return u.Namespace == namespace && slices.ContainsFunc(u.Pods, isPod)
		})
}

// explainUnplannedPod explains a pod that no plan has: the newest batch ignores it, or it is on a node.
func (s *storedDecisions) explainUnplannedPod(ctx context.Context, newest *recordedPlan, namespace, name string) (explain.PodExplanation, error) {
	if newest != nil {
		if batch, err := blob.Get[planning.Batch](ctx, s.archive.Store, newest.plan.Batch); err == nil {
			decision := explain.NewDecision(batch, instancetypes.InstanceTypes{}, newest.plan, nil)
			if answer, err := decision.ExplainPod(namespace, name); err == nil && answer.State == explain.StateIgnored {
				return answer, nil
			}
		}
	}
	snapshot, err := s.findSnapshot(ctx)
	if err != nil {
		return explain.PodExplanation{}, err
	}
	cat, err := s.readCatalogue(ctx, snapshot.Catalogue)
	if err != nil {
		return explain.PodExplanation{}, err
	}
	batch := planning.Batch{Snapshot: snapshot, Pending: snapshot.PendingPods}
	batch.Snapshot.PendingPods = nil
	decision := explain.DecideNow(batch, instancetypes.New(snapshot, cat))
	answer, err := decision.ExplainPod(namespace, name)
	if fault.Is(err, fault.Missing) {
		return answer, fault.F("explaining the pod", fault.Missing, "pod %s/%s is in no plan from %s to %s, and not in the snapshot of %s", namespace, name,
			formatUTC(s.until.Add(-s.since)), formatUTC(s.until), formatUTC(snapshot.TakenAt)).
			WithHint("%s", strings.Join(append([]string{"check -n and the name; look further back with --since 72h, or at another time with --at"}, s.notes...), "; "))
	}
	answer.Notes = append(answer.Notes, fmt.Sprintf("no plan since %s has the pod: kube-scheduler bound it to a node with free capacity, or its plan is older (--since)", formatUTC(s.until.Add(-s.since))))
	return answer, err
}

// reproduce plans a recorded batch again.
func (s *storedDecisions) reproduce(ctx context.Context, found recordedPlan) (*explain.PlanDecision, error) {
	batch, err := blob.Get[planning.Batch](ctx, s.archive.Store, found.plan.Batch)
	if err != nil {
		return nil, wrapDocument("reading the batch of "+found.entry.Ref.Key(), err)
	}
	cat, err := s.readCatalogue(ctx, batch.Snapshot.Catalogue)
	if err != nil {
		return nil, err
	}
	compared, built, err := explain.Reproduce(batch, cat, found.plan, found.entry.Ref)
	if err != nil {
		return nil, err
	}
	intents := built.Intents
	if !compared.IsReproduced {
		intents = s.readIntents(ctx, &found.plan)
	}
	decision := explain.NewDecision(batch, instancetypes.New(batch.Snapshot, cat), found.plan, intents)
	decision.Reproduction = &compared
	return &decision, nil
}

// readIntents reads the recorded launch requests of a plan that this command would make differently.
func (s *storedDecisions) readIntents(ctx context.Context, plan *planning.Plan) []launchspec.Intent {
	var out []launchspec.Intent
	for i := range plan.Intents {
		intent, err := blob.Get[launchspec.Intent](ctx, s.archive.Store, plan.Intents[i].Ref)
		if err != nil {
			s.skipDocument(records.StoredDocument{Ref: plan.Intents[i].Ref}, err)
		}
		out = append(out, intent)
	}
	return out
}

// readCatalogue reads the catalogue of a decision.
func (s *storedDecisions) readCatalogue(ctx context.Context, ref event.Ref) (catalog.Catalogue, error) {
	if ref.IsZero() {
		return catalog.Catalogue{}, fault.F("reading the catalogue", fault.Missing, "the documents refer to no catalogue").
			WithHint("check that the catalog service runs")
	}
	cat, err := blob.Get[catalog.Catalogue](ctx, s.archive.Store, ref)
	if err != nil {
		return cat, wrapDocument("reading the catalogue of the decision", err)
	}
	return cat, nil
}

// wrapDocument explains why a document cannot be read.
func wrapDocument(op string, err error) error {
	switch {
	case fault.Is(err, fault.Poison):
		return fault.E(op, fault.Invalid, err).WithHint("the document was changed or damaged after it was written: its content does not match its name; restore it, or explain another time with --at")
	case fault.Is(err, fault.Retry):
		return fault.E(op, fault.Missing, err).WithHint("the bucket keeps documents for 30 days after their last write; explain a later time with --at")
	}
	return fmt.Errorf("%s: %w", op, err)
}

// addPodLaunch adds the launch of the pod's node, which may be in an earlier plan, and what EC2 launched.
func (s *storedDecisions) addPodLaunch(ctx context.Context, answer *explain.PodExplanation) error {
	if answer.Node == nil || answer.Node.Claim == "" {
		return nil
	}
	var err error
	if answer.Launch == nil {
		if answer.Launch, answer.LaunchReproduction, err = s.findLaunch(ctx, answer.Node.Claim); err != nil || answer.Launch == nil {
			return err
		}
	}
	snapshot, err := s.findSnapshot(ctx)
	if err != nil {
		return nil //nolint:nilerr // The launch may be the first one, before any snapshot.
	}
	if at, err := explain.FindNode(&snapshot, answer.Launch.Claim); err == nil {
		answer.Launch.SetChosen(&snapshot.Nodes[at], snapshot.Unavailable)
	}
	return nil
}

// findLaunch explains the launch of a NodeClaim; nil if no plan of the period has it, or if its documents
// cannot be read, which is noted.
func (s *storedDecisions) findLaunch(ctx context.Context, claim string) (*explain.Launch, *explain.Reproduction, error) {
	found, isFound, err := s.findPlan(ctx, func(p *planning.Plan) bool { return launchesClaim(p, claim) })
	if err != nil {
		return nil, nil, err
	}
	if !isFound {
		s.notes = append(s.notes, fmt.Sprintf("the plan that launched NodeClaim %s is older than %s: look further back with --since", claim, formatUTC(s.until.Add(-s.since))))
		return nil, nil, nil
	}
	explainLaunch := s.explainReplacement
	if isOfBatch(&found.plan) {
		explainLaunch = s.explainBatchLaunch
	}
	launch, compared, err := explainLaunch(ctx, found, claim)
	if err != nil {
		s.notes = append(s.notes, "the launch of NodeClaim "+claim+" cannot be explained: "+err.Error())
		return nil, nil, nil //nolint:nilerr // the rest is explained without the launch
	}
	return &launch, compared, nil
}

// explainBatchLaunch plans again the batch that launched a NodeClaim.
func (s *storedDecisions) explainBatchLaunch(ctx context.Context, found recordedPlan, claim string) (explain.Launch, *explain.Reproduction, error) {
	decision, err := s.reproduce(ctx, found)
	if err != nil {
		return explain.Launch{}, nil, err
	}
	launch, _ := decision.ExplainLaunch(claim)
	return launch, decision.Reproduction, nil
}

// findSnapshot returns the newest snapshot until the time of the decision.
func (s *storedDecisions) findSnapshot(ctx context.Context) (planning.Snapshot, error) {
	entries, err := s.archive.List(ctx, planning.SnapshotKind, s.until.Add(-blob.Retention), s.until.Add(writeLag))
	if err != nil {
		return planning.Snapshot{}, err
	}
	var snapshot planning.Snapshot
	isFound := false
	slices.Reverse(entries)
	err = records.Read(ctx, s.archive, entries, func(_ records.StoredDocument, one planning.Snapshot) bool {
		if one.TakenAt.After(s.until) {
			return true
		}
		snapshot, isFound = one, true
		return false
	}, s.skipDocument)
	if err != nil {
		return snapshot, err
	}
	if !isFound {
		return snapshot, fault.F("finding a snapshot in "+s.place, fault.Missing, "the 30 days before %s have no snapshot", formatUTC(s.until)).
			WithHint("check that the prefix is that of the cluster and that its watcher ran; the watcher writes snapshots only for clusters that have a node with a NodeClaim")
	}
	if age := s.until.Sub(snapshot.TakenAt); age > snapshotAgeMax {
		s.noteGap(snapshot.TakenAt, age)
	}
	return snapshot, nil
}

// noteGap notes hours without a snapshot.
func (s *storedDecisions) noteGap(last time.Time, age time.Duration) {
	note := fmt.Sprintf("the archive has no snapshot from %s until %s (%s), although the watcher writes one at least every hour: the answer is for the state at the beginning of this gap",
		formatUTC(last), formatUTC(s.until), age.Round(time.Minute))
	if !slices.Contains(s.notes, note) {
		s.notes = append(s.notes, note)
	}
}

// explainNode explains a node of the snapshot, and its launch.
func (s *storedDecisions) explainNode(ctx context.Context, name string) (explain.NodeExplanation, error) {
	snapshot, err := s.findSnapshot(ctx)
	if err != nil {
		return explain.NodeExplanation{}, err
	}
	cat, err := s.readCatalogue(ctx, snapshot.Catalogue)
	if err != nil {
		return explain.NodeExplanation{}, err
	}
	// The services evaluate a snapshot while it is current.
	asOf := s.until
	if asOf.Sub(snapshot.TakenAt) > snapshotAgeMax {
		asOf = snapshot.TakenAt
	}
	answer, err := explain.ExplainNode(snapshot, instancetypes.New(snapshot, cat), asOf, name)
	if err != nil {
		return answer, err
	}
	if answer.Proposal == "confirmed" {
		s.addConfirmation(ctx, &answer)
	}
	if answer.Claim != "" {
		s.addAudited(ctx, &answer)
	}
	return answer, s.addLaunch(ctx, &answer, &snapshot)
}

// addLaunch adds why the node has its instance type.
func (s *storedDecisions) addLaunch(ctx context.Context, answer *explain.NodeExplanation, snapshot *planning.Snapshot) (err error) {
	if answer.Claim == "" {
		return nil
	}
	if answer.Launch, answer.LaunchReproduction, err = s.findLaunch(ctx, answer.Claim); err != nil || answer.Launch == nil {
		return err
	}
	if at, err := explain.FindNode(snapshot, answer.Claim); err == nil {
		answer.Launch.SetChosen(&snapshot.Nodes[at], snapshot.Unavailable)
	}
	return nil
}

// launchesClaim reports whether a plan launches a NodeClaim.
func launchesClaim(p *planning.Plan, claim string) bool {
	return slices.ContainsFunc(p.Intents, func(i planning.PlannedIntent) bool {
		return slices.ContainsFunc(i.Claims, func(c planning.PlannedClaim) bool { return c.Object.Name == claim })
	})
}

// explainNodePool explains a NodePool in the snapshot, or without one in the last batch.
func (s *storedDecisions) explainNodePool(ctx context.Context, name string) (explain.NodePoolExplanation, error) {
	found, isFound, err := s.findPlan(ctx, isOfBatch)
	if err != nil {
		return explain.NodePoolExplanation{}, err
	}
	decision := &explain.PlanDecision{}
	if isFound {
		if decision, err = s.reproduce(ctx, found); err != nil {
			return explain.NodePoolExplanation{}, err
		}
	}
	snapshot, err := s.findSnapshot(ctx)
	switch {
	case fault.Is(err, fault.Missing) && isFound:
		s.notes = append(s.notes, "there is no snapshot: the state is that of the last batch")
		return decision.ExplainNodePool(&decision.Batch.Snapshot, name)
	case err != nil:
		return explain.NodePoolExplanation{}, err
	}
	if !isFound {
		cat, err := s.readCatalogue(ctx, snapshot.Catalogue)
		if err != nil {
			return explain.NodePoolExplanation{}, err
		}
		none := explain.NewDecision(planning.Batch{}, instancetypes.New(snapshot, cat), planning.Plan{}, nil)
		decision = &none
		s.notes = append(s.notes, fmt.Sprintf("there is no plan since %s: no pod was pending", formatUTC(s.until.Add(-s.since))))
	}
	return decision.ExplainNodePool(&snapshot, name)
}

func formatUTC(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" }
