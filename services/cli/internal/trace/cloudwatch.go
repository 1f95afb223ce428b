package trace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// LogsAPI is the part of the CloudWatch Logs client that is used.
type LogsAPI interface {
	FilterLogEvents(context.Context, *cloudwatchlogs.FilterLogEventsInput, ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.FilterLogEventsOutput, error)
}

// CloudWatch reads log groups.
type CloudWatch struct {
	Logs LogsAPI
	// Groups are the log groups; the first is the audit log, without which there is no answer.
	Groups       []string
	Since, Until time.Time
	// PagesMax bounds the pages of one log group and one search.
	PagesMax int
	// Progress is called after each page with the number of entries so far; it may be nil.
	Progress func(doing string, done int)
}

const (
	// termsMax is the number of terms in one filter pattern, whose length CloudWatch limits to 1,024.
	termsMax = 12
	// termLengthMax leaves out terms that would make a pattern too long.
	termLengthMax = 80
)

// Search returns the entries with one of the terms, and the parts that could not be read. The error is that
// of the first log group.
func (c *CloudWatch) Search(ctx context.Context, terms []string) (out Entries, missing []string, err error) {
	for i, group := range c.Groups {
		for first := 0; first < len(terms); first += termsMax {
			note, err := c.searchGroup(ctx, group, terms[first:min(first+termsMax, len(terms))], &out)
			if err != nil && (i == 0 || ctx.Err() != nil) {
				return out, missing, err
			}
			if err != nil {
				note = fmt.Sprintf("log group %s: %v", group, err)
			}
			if note != "" {
				missing = append(missing, note)
				break
			}
		}
	}
	return out, missing, nil
}

// searchGroup adds the entries of one log group; the note is about entries that were left out.
func (c *CloudWatch) searchGroup(ctx context.Context, group string, terms []string, out *Entries) (note string, err error) {
	ask := &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: &group, FilterPattern: aws.String(filterPattern(terms)), StartTime: aws.Int64(c.Since.UnixMilli()), EndTime: aws.Int64(c.Until.UnixMilli()),
	}
	for page := 1; ; page++ {
		got, err := c.Logs.FilterLogEvents(ctx, ask)
		if awsfault.ErrorCode(err) == "ResourceNotFoundException" {
			return "", fault.F("reading log group "+group, fault.Missing, "it does not exist in this account and region").WithHint("check --cluster, --name-prefix and AWS_REGION")
		}
		if err != nil {
			return "", awsfault.ReadCall("reading log group "+group, "logs:FilterLogEvents").Wrap(err)
		}
		for _, e := range got.Events {
			out.AddText(aws.ToString(e.Message))
		}
		if c.Progress != nil {
			c.Progress("reading "+group, out.Count())
		}
		if ask.NextToken = got.NextToken; ask.NextToken == nil {
			return "", nil
		}
		if page >= c.PagesMax {
			return fmt.Sprintf("log group %s has more than %d pages in this period: shorten it with --since and --until", group, c.PagesMax), nil
		}
	}
}

// filterPattern matches entries with any of the terms
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html).
func filterPattern(terms []string) string {
	var quoted []string
	for _, term := range terms {
		if len(term) <= termLengthMax && !strings.ContainsAny(term, `"\`) {
			quoted = append(quoted, `"`+term+`"`)
		}
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "?" + strings.Join(quoted, " ?")
}

// FindTraces returns the correlation ids of the entries that mention the object, and the ids of the snapshots for
// which its disruption was decided, sorted.
func FindTraces(e Entries, q Query) []string {
	ids := map[string]bool{}
	found := Build(e, q)
	for _, id := range found.Traces {
		ids[id] = true
	}
	for i := range found.Steps {
		if s := &found.Steps[i]; s.Cause != "" && strings.HasPrefix(s.What, string(event.DisruptionProposedType)) {
			ids[s.Cause] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
