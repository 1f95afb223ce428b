package disruption

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// decisionInputs are the inputs of the decisions.
type decisionInputs struct {
	ref       event.Ref
	snapshot  planning.Snapshot
	catalogue catalog.Catalogue
}

// publishDecisions publishes one event for each proposal. It stores the documents that an event
// refers to first.
func (s Service) publishDecisions(ctx context.Context, e event.Envelope, from decisionInputs, decisions []decision) error {
	var facts []event.Envelope
	for _, d := range decisions {
		body := event.DisruptionProposed{
			Proposal: d.Proposal, Phase: d.phase, Reason: string(d.Reason), Method: string(d.Method), Claims: d.claims,
			TerminateFirst: string(d.TerminateFirst), Reboot: d.Reboot, SavedPerHr: event.Usd(d.SavedPerHour), Moved: d.PodsMoved, Snapshot: from.ref, Decided: from.snapshot.TakenAt.UTC(), ProposedAt: d.Since.UTC(),
		}
		if d.phase == event.Confirmed {
			if err := s.storePlan(ctx, from, d, &body); err != nil {
				return fmt.Errorf("planning the replacements of proposal %s: %w", d.Proposal, err)
			}
		}
		fact, err := s.newTracedFact(body, e)
		if err != nil {
			return err
		}
		facts = append(facts, fact)
	}
	if err := queue.Publish(ctx, s.Bus, facts...); err != nil {
		return fmt.Errorf("publishing %d proposals: %w", len(facts), err)
	}
	s.recordSpans(facts, e, from.snapshot.TakenAt)
	return nil
}

// newTracedFact returns the event of a proposal. All events of a proposal are in one trace, whose id is
// the proposal's, because different snapshots propose and confirm it. Lifecycle continues this trace on
// the NodeClaims and their replacements.
func (s Service) newTracedFact(body event.DisruptionProposed, e event.Envelope) (event.Envelope, error) {
	maker := event.Maker{Service: "disruption", Cluster: s.Cluster, Samples: s.Samples}
	fact, err := maker.New(s.Now(), body, &e)
	if err != nil {
		return fact, err
	}
	if isTraceID(body.Proposal) { // A person may have edited the annotation.
		fact.Correlation = body.Proposal
		fact.Traceparent = maker.RootTraceparent(fact)
	}
	return fact, nil
}

// isTraceID reports whether an id has 32 lower-case hex digits.
func isTraceID(id string) bool { return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" }

// recordSpans records the span of each decision, from the snapshot until its event is published, with a
// link to the trace of the snapshot. A repeated event has the same span.
func (s Service) recordSpans(facts []event.Envelope, snapshot event.Envelope, taken time.Time) {
	if s.Span == nil {
		return
	}
	for _, fact := range facts {
		body, err := event.DecodeBody[event.DisruptionProposed](fact)
		if err != nil {
			continue // It was encoded above.
		}
		span := host.Span{
			Name: "disruption " + string(body.Phase), Envelope: fact, IsRoot: true, Start: taken, End: s.Now(),
			Fields: []any{"reason", body.Reason, "method", body.Method, "nodeclaims", len(body.Claims)},
		}
		if snapshot.Traceparent != "" {
			span.Links = []string{snapshot.Traceparent}
		}
		span.Envelope.Data = nil
		s.Span(span)
	}
}

// reportKept publishes why nodes are kept, if a report is due. It is separate from the proposals,
// which do not depend on it.
func (s Service) reportKept(ctx context.Context, e event.Envelope, from decisionInputs, kept []Kept) error {
	if !s.ReportSchedule.isDue(from.snapshot.TakenAt) {
		return nil
	}
	reasons, unreported := groupKept(&from.snapshot, kept)
	if unreported > 0 {
		host.AddLogFields(ctx, "unreported", unreported)
	}
	if len(reasons) > 0 {
		body := event.NodesKept{Kept: reasons, Snapshot: from.ref, Decided: from.snapshot.TakenAt.UTC()}
		fact, err := event.Maker{Service: "disruption", Cluster: s.Cluster}.New(s.Now(), body, &e)
		if err != nil {
			return err
		}
		if err := queue.Publish(ctx, s.Bus, fact); err != nil {
			return fmt.Errorf("publishing the reasons why nodes are kept: %w", err)
		}
	}
	s.ReportSchedule.recordReport(from.snapshot.TakenAt)
	return nil
}

// storePlan stores the plan of the replacements and their pods, and refers to it in the
// confirmation. If a launch request cannot be encoded, it drops the proposal instead.
func (s Service) storePlan(ctx context.Context, from decisionInputs, d decision, body *event.DisruptionProposed) error {
	if len(d.Result.Nodes) == 0 && len(d.Result.Nominations) == 0 {
		return nil
	}
	built, err := launchspec.Replace(d.Proposal, from.snapshot, from.ref, d.Result, from.catalogue)
	if err != nil {
		return err
	}
	if len(built.Plan.Warnings) > 0 {
		host.AddLogFields(ctx, "warnings", built.Plan.Warnings)
	}
	if built.Claims() < len(d.Result.Nodes) {
		body.Phase = event.Dropped
		return nil
	}
	body.Plan, err = built.Store(ctx, s.Blobs, 1) // A proposal has few intents.
	return err
}
