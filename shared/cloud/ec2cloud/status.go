package ec2cloud

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// DescribeStatus is ec2:DescribeInstanceStatus. It returns the running instances that are impaired or have scheduled
// events, each once. EC2 filters them: an account may have a hundred thousand healthy instances, which take more pages
// than a caller has time for.
func (c Cloud) DescribeStatus(ctx context.Context) ([]cloud.Status, error) {
	filters := statusFilters()
	found := make([][]cloud.Status, len(filters))
	group, ctx := errgroup.WithContext(ctx)
	for i, f := range filters {
		group.Go(func() (err error) {
			found[i], err = c.statuses(ctx, f)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	first := once()
	return slices.DeleteFunc(slices.Concat(found...), func(s cloud.Status) bool { return !first(s.InstanceID) }), nil
}

// statusFilters returns the filters of the calls. EC2 returns only what matches all filters of one call, so each of
// them needs its own. No call filters by attached EBS volumes: that check also fails because of the volume of one pod,
// which is no reason to replace the node. Karpenter omits it too.
func statusFilters() []types.Filter {
	var codes []string
	for _, code := range types.EventCode("").Values() {
		codes = append(codes, string(code))
	}
	failed := string(types.SummaryStatusImpaired)
	return []types.Filter{filter("instance-status.status", failed), filter("system-status.status", failed), filter("event.code", codes...)}
}

// statuses returns the instances that match the filter. EC2 returns all checks and events of each, not only the
// matching ones.
func (c Cloud) statuses(ctx context.Context, matching types.Filter) ([]cloud.Status, error) {
	pages := ec2.NewDescribeInstanceStatusPaginator(c.client,
		&ec2.DescribeInstanceStatusInput{Filters: []types.Filter{matching}, MaxResults: aws.Int32(page)})
	var out []cloud.Status
	what := awsfault.ReadCall("describing the status of instances", "ec2:DescribeInstanceStatus")
	err := all(ctx, what, pages, func(found *ec2.DescribeInstanceStatusOutput) {
		for _, s := range found.InstanceStatuses {
			status := cloud.Status{InstanceID: aws.ToString(s.InstanceId), Events: pending(s.Events)}
			status.Impaired, status.Undated = impaired(s.InstanceStatus, s.SystemStatus)
			if !status.Impaired.IsZero() || status.Undated || len(status.Events) > 0 {
				out = append(out, status)
			}
		}
	})
	return out, err
}

// impaired returns the earliest time since which a check fails, and whether EC2 does not report that time for one.
func impaired(summaries ...*types.InstanceStatusSummary) (since time.Time, undated bool) {
	for _, summary := range summaries {
		if summary == nil || summary.Status != types.SummaryStatusImpaired {
			continue
		}
		from := earliest(summary.Details)
		undated = undated || from.IsZero()
		if since.IsZero() || !from.IsZero() && from.Before(since) {
			since = from
		}
	}
	return since, undated
}

func earliest(details []types.InstanceStatusDetails) time.Time {
	var since time.Time
	for _, detail := range details {
		if at := aws.ToTime(detail.ImpairedSince); !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// pending omits completed events, which EC2 marks in their description for a week.
func pending(events []types.InstanceStatusEvent) []cloud.ScheduledEvent {
	var out []cloud.ScheduledEvent
	for _, e := range events {
		text := aws.ToString(e.Description)
		if strings.HasPrefix(text, "[Completed]") || strings.HasPrefix(text, "[Canceled]") {
			continue
		}
		out = append(out, cloud.ScheduledEvent{Code: string(e.Code), NotBefore: aws.ToTime(e.NotBefore)})
	}
	return out
}
