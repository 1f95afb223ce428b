package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/joist-autoscaler/joist/shared/awsfault"
	"github.com/joist-autoscaler/joist/shared/event"
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

// Past is a part of a bus's archive that is to be replayed to one rule.
type Past struct {
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

// Noop reports whether all of it has expired.
func (p Past) Noop() bool { return !p.To.After(p.Obeyed) }

// Select finds the archive and the rule, and says what a replay would mean at now.
func Select(ctx context.Context, a Archives, plan topology.Plan, rule topology.Rule, from, to, now time.Time) (Past, error) {
	p := Past{Archive: plan.Archive, Rule: rule.Name, Service: rule.Service, From: from.UTC(), To: to.UTC(), Obeyed: now.Add(-longest(rule)).UTC()}
	what := "looking at the archive " + plan.Archive
	archive, err := a.DescribeArchive(ctx, &eventbridge.DescribeArchiveInput{ArchiveName: &plan.Archive})
	if awsfault.Code(err) == "ResourceNotFoundException" {
		return p, fault.F(what, fault.Missing, "there is no such archive in this account and region").
			WithHint("see whether --cluster, --name-prefix and AWS_REGION are right, and whether the cluster's stack is deployed")
	}
	if err != nil {
		return p, awsfault.Read(what, "events:DescribeArchive").Fault(err)
	}
	if archive.State != types.ArchiveStateEnabled {
		return p, fault.F(what, fault.Invalid, "it is %s: %s", archive.State, aws.ToString(archive.StateReason))
	}
	if days := aws.ToInt32(archive.RetentionDays); days > 0 {
		if oldest := now.AddDate(0, 0, -int(days)); !to.After(oldest) {
			return p, fault.F(what, fault.Missing, "it keeps events for %d days, since %s", days, oldest.UTC().Format(time.RFC3339)).WithHint("--to a later time")
		}
	}
	p.Events, p.archiveARN, p.busARN = archive.EventCount, aws.ToString(archive.ArchiveArn), aws.ToString(archive.EventSourceArn)
	told, err := a.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &rule.Name, EventBusName: &rule.Bus})
	if err != nil {
		return p, awsfault.Read("looking for the rule "+rule.Name, "events:DescribeRule").Fault(err)
	}
	p.ruleARN = aws.ToString(told.Arn)
	return p, nil
}

// longest is the longest life of what a rule selects.
func longest(rule topology.Rule) time.Duration {
	var pattern struct {
		Types []event.Type `json:"detail-type"`
	}
	// The pattern is a plan's own.
	_ = json.Unmarshal([]byte(rule.Pattern), &pattern)
	var life time.Duration
	for _, t := range pattern.Types {
		if spec, err := t.Spec(); err == nil {
			life = max(life, spec.TTL)
		}
	}
	return life
}

// Replayed is what became of a replay of the archive.
type Replayed struct {
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
	Tell     func(r Replayed)
}

// Play starts the replay and stays with it until it has ended. When ctx ends it cancels
// the replay, and says until when events were replayed.
func (p Player) Play(ctx context.Context, past Past) (Replayed, error) {
	name := p.Prefix + "-joist-" + strconv.FormatInt(p.Now().Unix(), 10)
	_, err := p.Archives.StartReplay(context.WithoutCancel(ctx), &eventbridge.StartReplayInput{
		ReplayName: &name, EventSourceArn: &past.archiveARN, EventStartTime: &past.From, EventEndTime: &past.To,
		Description: aws.String("joist replay --archive --rule " + past.Rule),
		Destination: &types.ReplayDestination{Arn: &past.busARN, FilterArns: []string{past.ruleARN}},
	})
	if err != nil {
		return Replayed{}, awsfault.Write("starting to replay the archive "+past.Archive, "events:StartReplay").Fault(err)
	}
	for {
		if p.Pause(ctx, lookEvery) != nil {
			return p.cancel(ctx, name)
		}
		r, err := p.look(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return p.cancel(ctx, name)
			}
			return r, fmt.Errorf("the replay goes on in EventBridge: %w", err)
		}
		p.Tell(r)
		if r.ended() {
			return r, r.failure()
		}
	}
}

func (r Replayed) ended() bool {
	return r.State == string(types.ReplayStateCompleted) || r.State == string(types.ReplayStateCancelled) || r.State == string(types.ReplayStateFailed)
}

// failure is an error where EventBridge gave up.
func (r Replayed) failure() error {
	if r.State != string(types.ReplayStateFailed) {
		return nil
	}
	return fault.F("replaying the archive", fault.Retry, "EventBridge gave up").WithHint("aws events describe-replay --replay-name %s", r.Name)
}

// Interrupted reports whether it ended before its time.
func (r Replayed) Interrupted() bool { return r.State == string(types.ReplayStateCancelled) }

func (p Player) look(ctx context.Context, name string) (Replayed, error) {
	r := Replayed{Name: name}
	told, err := p.Archives.DescribeReplay(ctx, &eventbridge.DescribeReplayInput{ReplayName: &name})
	if err != nil {
		return r, awsfault.Read("looking at the replay "+name, "events:DescribeReplay").Fault(err)
	}
	r.State = string(told.State)
	if told.EventLastReplayedTime != nil {
		until := told.EventLastReplayedTime.UTC()
		r.Until = &until
	}
	return r, nil
}

// cancel ends the replay, and waits until it has ended.
func (p Player) cancel(ctx context.Context, name string) (Replayed, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer stop()
	_, err := p.Archives.CancelReplay(ctx, &eventbridge.CancelReplayInput{ReplayName: &name})
	// One that has ended meanwhile cannot be cancelled, and need not be.
	if err != nil && !strings.Contains(awsfault.Code(err), "IllegalStatus") {
		return Replayed{Name: name}, awsfault.Write("cancelling the replay "+name, "events:CancelReplay").Fault(err)
	}
	for {
		r, err := p.look(ctx, name)
		if err != nil || r.ended() {
			return r, err
		}
		if err := p.Pause(ctx, lookEvery); err != nil {
			return r, fmt.Errorf("waiting for the end of the cancelled replay: %w", err)
		}
	}
}
