package ec2cloud

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

// DescribeStatus is ec2:DescribeInstanceStatus. It returns the running instances that are impaired or have scheduled
// events.
func (c Cloud) DescribeStatus(ctx context.Context) ([]cloud.Status, error) {
	pages := ec2.NewDescribeInstanceStatusPaginator(c.client,
		&ec2.DescribeInstanceStatusInput{MaxResults: aws.Int32(page)})
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
