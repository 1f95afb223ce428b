package replay

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// EventBridgeAPI is the part of the EventBridge client that is used.
type EventBridgeAPI interface {
	DescribeArchive(context.Context, *eventbridge.DescribeArchiveInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeArchiveOutput, error)
	DescribeRule(context.Context, *eventbridge.DescribeRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error)
	StartReplay(context.Context, *eventbridge.StartReplayInput, ...func(*eventbridge.Options)) (*eventbridge.StartReplayOutput, error)
	DescribeReplay(context.Context, *eventbridge.DescribeReplayInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeReplayOutput, error)
	CancelReplay(context.Context, *eventbridge.CancelReplayInput, ...func(*eventbridge.Options)) (*eventbridge.CancelReplayOutput, error)
}

// ArchivePart is a time range of a bus archive, to be replayed to one rule.
type ArchivePart struct {
	Archive string    `json:"archive"`
	Rule    string    `json:"rule"`
	Service string    `json:"service,omitempty"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Events is the approximate number of events in the whole archive.
	Events int64 `json:"eventsInArchive"`
	// ValidSince is the time since which an event of the rule may not have expired. Services
	// drop and count older events.
	ValidSince time.Time `json:"validSince"`

	archiveARN, busARN, ruleARN string
}

// HasExpired reports whether all events of the part have expired.
func (p ArchivePart) HasExpired() bool { return !p.To.After(p.ValidSince) }

// Archive is an existing archive of a bus.
type Archive struct {
	// Since is the time of the first event that the archive may have: its creation, or the
	// start of its retention period. It is zero if EventBridge reports neither.
	Since time.Time

	name, arn, bus string
	events         int64
}

// FindArchive finds the archive of a cluster's bus.
func FindArchive(ctx context.Context, a EventBridgeAPI, plan topology.Plan, now time.Time) (Archive, error) {
	what := "reading archive " + plan.Archive
	found, err := a.DescribeArchive(ctx, &eventbridge.DescribeArchiveInput{ArchiveName: &plan.Archive})
	if awsfault.ErrorCode(err) == "ResourceNotFoundException" {
		return Archive{}, fault.F(what, fault.Missing, "the archive does not exist in this account and region").
			WithHint("check --cluster, --name-prefix and AWS_REGION, and that the cluster's stack is deployed")
	}
	if err != nil {
		return Archive{}, awsfault.ReadCall(what, "events:DescribeArchive").Wrap(err)
	}
	if found.State != types.ArchiveStateEnabled {
		return Archive{}, fault.F(what, fault.Invalid, "the archive is in state %s: %s", found.State, aws.ToString(found.StateReason))
	}
	out := Archive{Since: aws.ToTime(found.CreationTime), name: plan.Archive, arn: aws.ToString(found.ArchiveArn), bus: aws.ToString(found.EventSourceArn), events: found.EventCount}
	if days := int(aws.ToInt32(found.RetentionDays)); days > 0 {
		if start := now.AddDate(0, 0, -days); start.After(out.Since) {
			out.Since = start
		}
	}
	return out, nil
}

// SelectPart finds the rule and returns the part of the archive to replay. Its error is
// fault.Missing if the archive has no events before to.
func (h Archive) SelectPart(ctx context.Context, a EventBridgeAPI, rule topology.Rule, from, to, now time.Time) (ArchivePart, error) {
	p := ArchivePart{Archive: h.name, Rule: rule.Name, Service: rule.Service, From: from.UTC(), To: to.UTC(), Events: h.events, ValidSince: now.Add(-longestLifetime(rule)).UTC(), archiveARN: h.arn, busARN: h.bus}
	if !to.After(h.Since) {
		return p, fault.F("reading archive "+h.name, fault.Missing, "the archive has no events before %s, its creation or the start of its retention period", h.Since.UTC().Format(time.RFC3339)).WithHint("--to with a later time")
	}
	found, err := a.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &rule.Name, EventBusName: &rule.Bus})
	if err != nil {
		return p, awsfault.ReadCall("finding rule "+rule.Name, "events:DescribeRule").Wrap(err)
	}
	p.ruleARN = aws.ToString(found.Arn)
	return p, nil
}

// longestLifetime returns the longest time to live of the types that a rule selects.
func longestLifetime(rule topology.Rule) time.Duration {
	var life time.Duration
	for _, t := range rule.Types {
		if spec, err := t.Spec(); err == nil {
			life = max(life, spec.TTL)
		}
	}
	return life
}

// ArchiveOutcome is the state of a replay of the archive.
type ArchiveOutcome struct {
	Name string `json:"name"`
	// State is the state that EventBridge reports.
	State string `json:"state"`
	// Until is the time of the last replayed event.
	Until *time.Time `json:"until,omitempty"`
}

// ArchiveReplayer replays an archive.
type ArchiveReplayer struct {
	EventBridge EventBridgeAPI
	Prefix      string
	Now         func() time.Time
	Pause       func(ctx context.Context, d time.Duration) error
	Report      func(r ArchiveOutcome)
}

// Replay starts a replay and waits until it has ended. If ctx ends, it cancels the replay, and
// the outcome has the time of the last replayed event.
func (p ArchiveReplayer) Replay(ctx context.Context, past ArchivePart) (ArchiveOutcome, error) {
	name := p.Prefix + "-joist-" + strconv.FormatInt(p.Now().Unix(), 10)
	_, err := p.EventBridge.StartReplay(context.WithoutCancel(ctx), &eventbridge.StartReplayInput{
		ReplayName: &name, EventSourceArn: &past.archiveARN, EventStartTime: &past.From, EventEndTime: &past.To,
		Description: aws.String("joist replay --archive --rule " + past.Rule),
		Destination: &types.ReplayDestination{Arn: &past.busARN, FilterArns: []string{past.ruleARN}},
	})
	if err != nil {
		return ArchiveOutcome{}, awsfault.WriteCall("starting the replay of archive "+past.Archive, "events:StartReplay").Wrap(err)
	}
	for {
		if p.Pause(ctx, pollInterval) != nil {
			return p.cancelReplay(ctx, name)
		}
		r, err := p.describeReplay(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return p.cancelReplay(ctx, name)
			}
			return r, fmt.Errorf("the replay continues in EventBridge: %w", err)
		}
		p.Report(r)
		if r.hasEnded() {
			return r, r.failureError()
		}
	}
}

func (r ArchiveOutcome) hasEnded() bool {
	return r.State == string(types.ReplayStateCompleted) || r.State == string(types.ReplayStateCancelled) || r.State == string(types.ReplayStateFailed)
}

// failureError returns an error if the replay has failed.
func (r ArchiveOutcome) failureError() error {
	if r.State != string(types.ReplayStateFailed) {
		return nil
	}
	return fault.F("replaying the archive", fault.Retry, "EventBridge reported a failure").WithHint("aws events describe-replay --replay-name %s", r.Name)
}

// WasInterrupted reports whether the replay was cancelled.
func (r ArchiveOutcome) WasInterrupted() bool { return r.State == string(types.ReplayStateCancelled) }

func (p ArchiveReplayer) describeReplay(ctx context.Context, name string) (ArchiveOutcome, error) {
	r := ArchiveOutcome{Name: name}
	found, err := p.EventBridge.DescribeReplay(ctx, &eventbridge.DescribeReplayInput{ReplayName: &name})
	if err != nil {
		return r, awsfault.ReadCall("reading replay "+name, "events:DescribeReplay").Wrap(err)
	}
	r.State = string(found.State)
	if found.EventLastReplayedTime != nil {
		until := found.EventLastReplayedTime.UTC()
		r.Until = &until
	}
	return r, nil
}

// cancelReplay cancels the replay and waits until it has ended.
func (p ArchiveReplayer) cancelReplay(ctx context.Context, name string) (ArchiveOutcome, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	_, err := p.EventBridge.CancelReplay(ctx, &eventbridge.CancelReplayInput{ReplayName: &name})
	// A replay that has ended meanwhile cannot be cancelled.
	if err != nil && !strings.Contains(awsfault.ErrorCode(err), "IllegalStatus") {
		return ArchiveOutcome{Name: name}, awsfault.WriteCall("cancelling replay "+name, "events:CancelReplay").Wrap(err)
	}
	for {
		r, err := p.describeReplay(ctx, name)
		if err != nil || r.hasEnded() {
			return r, err
		}
		if err := p.Pause(ctx, pollInterval); err != nil {
			return r, fmt.Errorf("waiting for the end of the cancelled replay: %w", err)
		}
	}
}
