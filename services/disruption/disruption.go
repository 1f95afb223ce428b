// Package disruption thinks about what to remove. It reads snapshots, proposes,
// and touches nothing.
//
// The invariants:
//
//   - A snapshot is the only input of a decision, its time included: the same
//     snapshot twice gives the same facts with the same ids.
//   - Nothing is confirmed that was not proposed in an earlier snapshot, and
//     found right again at least scheduling.ConfirmAfter later (B152).
//   - What cannot be understood forbids: a budget that cannot be read stops its
//     pool, and no other.
//
// For now only empty nodes are thought about.
package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/empty"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Types are the messages that disruption takes.
var Types = []event.Type{event.ClusterSnapshotType}

// Service is disruption over its ports.
type Service struct {
	Blobs   blob.Store
	Bus     queue.Sender
	Cluster event.Cluster
	Now     func() time.Time
}

// Handle thinks about one snapshot.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	if e.Type != event.ClusterSnapshotType {
		return fault.F("handling "+string(e.Type), fault.Poison, "disruption does not know the type")
	}
	body, err := event.As[event.ClusterSnapshot](e)
	if err != nil {
		return err
	}
	snapshot, err := blob.Get[scheduling.Snapshot](ctx, s.Blobs, body.Snapshot)
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	if whose := (event.Cluster{Name: snapshot.Cluster, UID: snapshot.UID}); !s.Cluster.Agrees(whose) {
		return fault.F("reading the snapshot", fault.Poison, "it is of cluster %q (%s), and this service serves %q (%s)",
			whose.Name, whose.UID, s.Cluster.Name, s.Cluster.UID)
	}
	// A cluster in which nothing changes is told of by the same document again.
	snapshot.Taken = body.Taken
	candidates := empty.Find(snapshot)
	if err := s.price(ctx, snapshot, candidates); err != nil {
		return err
	}
	decisions, problems := empty.Decide(snapshot, candidates)
	host.Say(ctx, "nodes", len(snapshot.Nodes), "empty", len(candidates), "decisions", len(decisions))
	if problems != nil {
		host.Say(ctx, "problems", problems.Error())
	}
	return s.publish(ctx, e, body.Snapshot, snapshot.Taken, decisions)
}

// price writes on each candidate what its removal saves, as far as the catalogue
// that the snapshot names knows it. A quiet cluster does not read it at all.
func (s Service) price(ctx context.Context, snapshot scheduling.Snapshot, candidates []empty.Candidate) error {
	if len(candidates) == 0 || snapshot.Catalogue.IsZero() {
		return nil
	}
	offers, err := blob.Get[catalog.Catalogue](ctx, s.Blobs, snapshot.Catalogue)
	if err != nil {
		return fmt.Errorf("reading the catalogue: %w", err)
	}
	for i := range candidates {
		candidates[i].SavedPerHr = pricePerHour(offers, candidates[i].Node.Labels)
	}
	return nil
}

// pricePerHour finds the price of the offering that the labels name, or 0.
func pricePerHour(offers catalog.Catalogue, labels map[string]string) event.Usd {
	t, _ := offers.Find(labels[corev1.LabelInstanceTypeStable])
	for _, o := range t.Offerings {
		if o.Zone == labels[corev1.LabelTopologyZone] && o.CapacityType == labels[karpenter.CapacityTypeLabelKey] {
			return event.Usd(o.PricePerHour)
		}
	}
	return 0
}

// publish says the decisions, one fact for each node.
func (s Service) publish(ctx context.Context, e event.Envelope, ref event.Ref, decided time.Time, decisions []empty.Decision) error {
	maker := event.Maker{Service: "disruption", Cluster: s.Cluster}
	var facts []event.Envelope
	for _, d := range decisions {
		fact, err := maker.New(s.Now(), event.DisruptionProposed{
			Proposal: d.Proposal, Phase: d.Phase, Reason: d.Reason, Claims: []string{d.Claim},
			SavedPerHr: d.SavedPerHr, Snapshot: ref, Decided: decided.UTC(),
		}, &e)
		if err != nil {
			return err
		}
		facts = append(facts, fact)
	}
	if err := queue.Publish(ctx, s.Bus, facts...); err != nil {
		return fmt.Errorf("publishing %d proposals: %w", len(facts), err)
	}
	return nil
}
