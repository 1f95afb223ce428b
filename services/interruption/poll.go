package interruption

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/services/interruption/internal/owner"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

// pollStatuses reads the instance status checks. It publishes a problem at each poll until
// the problem ends, so that a lost fact is repeated.
func (s *Service) pollStatuses(ctx context.Context, e event.Envelope, tick event.Tick) error {
	statuses, err := s.Statuses.DescribeStatus(ctx)
	if err != nil {
		return fmt.Errorf("describing the status of instances: %w", err)
	}
	var notices []notice.Notice
	var ids []string
	for _, status := range statuses {
		if found := notice.FromStatus(status, tick.Due, s.Now()); len(found) > 0 {
			notices = append(notices, found...)
			ids = append(ids, status.InstanceID)
		}
	}
	owners, err := s.ownerFinder().FindOwners(ctx, ids, tick.Due, false)
	if err != nil {
		return err
	}
	owned := make(map[string]owner.Instance, len(owners.Owned))
	for _, i := range owners.Owned {
		owned[i.ID] = i
	}
	var facts []event.Body
	for _, n := range notices {
		if i, ok := owned[n.Instances[0]]; ok {
			facts = append(facts, newNodeNoticed(&n, &i))
		}
	}
	host.AddLogFields(ctx, "statuses", len(statuses), "notices", len(facts))
	if err := s.publishFacts(ctx, &e, facts...); err != nil || s.Span == nil {
		return err
	}
	for _, fact := range facts {
		notice := fact.(event.NodeNoticed)
		s.Span(host.Span{
			Name: "notice " + string(notice.Kind), Envelope: s.eventMaker().NewHead(s.Now(), fact), IsRoot: true, Start: notice.Noticed, End: s.Now(),
		})
	}
	return nil
}
