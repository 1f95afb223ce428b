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

// Archives is what of EventBridge replays events.
type Archives interface {
	DescribeArchive(context.Context, *eventbridge.DescribeArchiveInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeArchiveOutput, error)
	DescribeRule(context.Context, *eventbridge.DescribeRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error)
	StartReplay(context.Context, *eventbridge.StartReplayInput, ...func(*eventbridge.Options)) (*eventbridge.StartReplayOutput, error)
	DescribeReplay(context.Context, *eventbridge.DescribeReplayInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeReplayOutput, error)
	CancelReplay(context.Context, *eventbridge.CancelReplayInput, ...func(*eventbridge.Options)) (*eventbridge.CancelReplayOutput, error)
}

// ArchivePart is a part of a bus's archive that is to be replayed to one rule.
type ArchivePart struct {
	Archive string    `json:"archive"`
	Rule    string    `json:"rule"`
	Service string    `json:"service,omitempty"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Events is how many the archive holds in all, approximately.
	Events int64 `json:"eventsInArchive"`
	// Obeyed is from when on events of the rule may still be acted on; what was said
	// before has expired, and its service drops it and counts that.
	Obeyed time.Time `json:"obeyedSince"`

	archiveARN, busARN, ruleARN string
}

// Expired reports whether all of it has expired.
func (p ArchivePart) Expired() bool { return !p.To.After(p.Obeyed) }

// Archive is a bus's archive as it is.
type Archive struct {
	// Since is from when on it has events: it was made then, or keeps none that are older.
	// It is zero where EventBridge says neither.
	Since time.Time

	name, arn, bus string
	events         int64
}

// FindArchive finds a cluster's archive.
func FindArchive(ctx context.Context, a Archives, plan topology.Plan, now time.Time) (Archive, error) {
	what := "reading archive " + plan.Archive
	told, err := a.DescribeArchive(ctx, &eventbridge.DescribeArchiveInput{ArchiveName: &plan.Archive})
	if awsfault.Code(err) == "ResourceNotFoundException" {
		return Archive{}, fault.F(what, fault.Missing, "the archive does not exist in this account and region").
			WithHint("check --cluster, --name-prefix and AWS_REGION, and that the cluster's stack is deployed")
	}
	if err != nil {
		return Archive{}, awsfault.Read(what, "events:DescribeArchive").Fault(err)
	}
	if told.State != types.ArchiveStateEnabled {
		return Archive{}, fault.F(what, fault.Invalid, "the archive is in state %s: %s", told.State, aws.ToString(told.StateReason))
	}
	out := Archive{Since: aws.ToTime(told.CreationTime), name: plan.Archive, arn: aws.ToString(told.ArchiveArn), bus: aws.ToString(told.EventSourceArn), events: told.EventCount}
	if days := int(aws.ToInt32(told.RetentionDays)); days > 0 {
		if kept := now.AddDate(0, 0, -days); kept.After(out.Since) {
			out.Since = kept
		}
	}
	return out, nil
}

// Select finds the rule, and says what a replay to it would mean at now.
func (h Archive) Select(ctx context.Context, a Archives, rule topology.Rule, from, to, now time.Time) (ArchivePart, error) {
	p := ArchivePart{Archive: h.name, Rule: rule.Name, Service: rule.Service, From: from.UTC(), To: to.UTC(), Events: h.events, Obeyed: now.Add(-longestLifetime(rule)).UTC(), archiveARN: h.arn, busARN: h.bus}
	if !to.After(h.Since) {
		return p, fault.F("reading archive "+h.name, fault.Missing, "the archive has no events before %s, its creation or the start of its retention period", h.Since.UTC().Format(time.RFC3339)).WithHint("--to with a later time")
	}
	told, err := a.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &rule.Name, EventBusName: &rule.Bus})
	if err != nil {
		return p, awsfault.Read("finding rule "+rule.Name, "events:DescribeRule").Fault(err)
	}
	p.ruleARN = aws.ToString(told.Arn)
	return p, nil
}

// longestLifetime is the longest life of what a rule selects.
func longestLifetime(rule topology.Rule) time.Duration {
	var life time.Duration
	for _, t := range rule.Types {
		if spec, err := t.Spec(); err == nil {
			life = max(life, spec.TTL)
		}
	}
	return life
}

// ArchiveOutcome is what became of a replay of the archive.
type ArchiveOutcome struct {
	Name string `json:"name"`
	// State is EventBridge's word.
	State string `json:"state"`
	// Until is the time of the last event that was replayed.
	Until *time.Time `json:"until,omitempty"`
}

// Player replays an archive.
type Player struct {
	Archives Archives
	Prefix   string
	Now      func() time.Time
	Pause    func(ctx context.Context, d time.Duration) error
	Tell     func(r ArchiveOutcome)
}

// Play starts the replay and stays with it until it has ended. When ctx ends it cancels
// the replay, and says until when events were replayed.
func (p Player) Play(ctx context.Context, past ArchivePart) (ArchiveOutcome, error) {
	name := p.Prefix + "-joist-" + strconv.FormatInt(p.Now().Unix(), 10)
	_, err := p.Archives.StartReplay(context.WithoutCancel(ctx), &eventbridge.StartReplayInput{
		ReplayName: &name, EventSourceArn: &past.archiveARN, EventStartTime: &past.From, EventEndTime: &past.To,
		Description: aws.String("joist replay --archive --rule " + past.Rule),
		Destination: &types.ReplayDestination{Arn: &past.busARN, FilterArns: []string{past.ruleARN}},
	})
	if err != nil {
		return ArchiveOutcome{}, awsfault.Write("starting the replay of archive "+past.Archive, "events:StartReplay").Fault(err)
	}
	for {
		if p.Pause(ctx, lookEvery) != nil {
			return p.cancel(ctx, name)
		}
		r, err := p.describeReplay(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return p.cancel(ctx, name)
			}
			return r, fmt.Errorf("the replay continues in EventBridge: %w", err)
		}
		p.Tell(r)
		if r.hasEnded() {
			return r, r.failureError()
		}
	}
}

func (r ArchiveOutcome) hasEnded() bool {
	return r.State == string(types.ReplayStateCompleted) || r.State == string(types.ReplayStateCancelled) || r.State == string(types.ReplayStateFailed)
}

// failureError is an error where EventBridge gave up.
func (r ArchiveOutcome) failureError() error {
	if r.State != string(types.ReplayStateFailed) {
		return nil
	}
	return fault.F("replaying the archive", fault.Retry, "EventBridge reported a failure").WithHint("aws events describe-replay --replay-name %s", r.Name)
}

// Interrupted reports whether it ended before its time.
func (r ArchiveOutcome) Interrupted() bool { return r.State == string(types.ReplayStateCancelled) }

func (p Player) describeReplay(ctx context.Context, name string) (ArchiveOutcome, error) {
	r := ArchiveOutcome{Name: name}
	told, err := p.Archives.DescribeReplay(ctx, &eventbridge.DescribeReplayInput{ReplayName: &name})
	if err != nil {
		return r, awsfault.Read("reading replay "+name, "events:DescribeReplay").Fault(err)
	}
	r.State = string(told.State)
	if told.EventLastReplayedTime != nil {
		until := told.EventLastReplayedTime.UTC()
		r.Until = &until
	}
	return r, nil
}

// cancel ends the replay, and waits until it has ended.
func (p Player) cancel(ctx context.Context, name string) (ArchiveOutcome, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer stop()
	_, err := p.Archives.CancelReplay(ctx, &eventbridge.CancelReplayInput{ReplayName: &name})
	// One that has ended meanwhile cannot be cancelled, and need not be.
	if err != nil && !strings.Contains(awsfault.Code(err), "IllegalStatus") {
		return ArchiveOutcome{Name: name}, awsfault.Write("cancelling replay "+name, "events:CancelReplay").Fault(err)
	}
	for {
		r, err := p.describeReplay(ctx, name)
		if err != nil || r.hasEnded() {
			return r, err
		}
		if err := p.Pause(ctx, lookEvery); err != nil {
			return r, fmt.Errorf("waiting for the end of the cancelled replay: %w", err)
		}
	}
}
