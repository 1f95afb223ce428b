package replay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// fakeEventBridge simulates an EventBridge with one archive and a replay with a sequence of
// states.
type fakeEventBridge struct {
	missing    bool
	createdAgo time.Duration // time since the creation; zero if unknown
	state      types.ArchiveState
	states     []types.ReplayState
	describes  int
	started    *eventbridge.StartReplayInput
	cancelled  bool
}

func (a *fakeEventBridge) DescribeArchive(context.Context, *eventbridge.DescribeArchiveInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeArchiveOutput, error) {
	if a.missing {
		return nil, &smithy.GenericAPIError{Code: "ResourceNotFoundException"}
	}
	out := &eventbridge.DescribeArchiveOutput{ArchiveArn: aws.String("archive"), EventSourceArn: aws.String("bus"), State: a.state, RetentionDays: aws.Int32(30), EventCount: 9}
	if a.createdAgo > 0 {
		out.CreationTime = aws.Time(now.Add(-a.createdAgo))
	}
	return out, nil
}

func (a *fakeEventBridge) DescribeRule(context.Context, *eventbridge.DescribeRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error) {
	return &eventbridge.DescribeRuleOutput{Arn: aws.String("rule")}, nil
}

func (a *fakeEventBridge) StartReplay(_ context.Context, in *eventbridge.StartReplayInput, _ ...func(*eventbridge.Options)) (*eventbridge.StartReplayOutput, error) {
	a.started = in
	return &eventbridge.StartReplayOutput{}, nil
}

func (a *fakeEventBridge) DescribeReplay(context.Context, *eventbridge.DescribeReplayInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeReplayOutput, error) {
	state := a.states[min(a.describes, len(a.states)-1)]
	a.describes++
	return &eventbridge.DescribeReplayOutput{State: state}, nil
}

func (a *fakeEventBridge) CancelReplay(context.Context, *eventbridge.CancelReplayInput, ...func(*eventbridge.Options)) (*eventbridge.CancelReplayOutput, error) {
	a.cancelled = true
	return &eventbridge.CancelReplayOutput{}, nil
}

// inboxRule returns the rule of lifecycle's facts. Their longest time to live is one hour,
// that of instance.gone.
func inboxRule(t *testing.T) (topology.Plan, topology.Rule) {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range plan.Rules {
		if r.Service == "lifecycle" {
			return plan, r
		}
	}
	t.Fatal("the plan has no rule of the inbox")
	return plan, topology.Rule{}
}

// TestSelectPart checks which parts have expired, and the errors.
func TestSelectPart(t *testing.T) {
	plan, rule := inboxRule(t)
	for _, test := range []struct {
		name     string
		of       fakeEventBridge
		from, to time.Duration // ago
		noop     bool
		kind     fault.Kind
		says     string
	}{
		{"long past", fakeEventBridge{state: types.ArchiveStateEnabled}, 3 * time.Hour, 2 * time.Hour, true, "", ""},
		{"up to the expiry", fakeEventBridge{state: types.ArchiveStateEnabled}, 3 * time.Hour, time.Hour, true, "", ""},
		{"a second later", fakeEventBridge{state: types.ArchiveStateEnabled}, 3 * time.Hour, time.Hour - time.Second, false, "", ""},
		{"no archive", fakeEventBridge{missing: true}, 3 * time.Hour, 2 * time.Hour, false, fault.Missing, "the archive does not exist"},
		{"disabled", fakeEventBridge{state: types.ArchiveStateDisabled}, 3 * time.Hour, 2 * time.Hour, false, fault.Invalid, "DISABLED"},
		{"before the retention", fakeEventBridge{state: types.ArchiveStateEnabled}, 800 * time.Hour, 721 * time.Hour, false, fault.Missing, "before 2026-10-23T12:00:00Z"},
		{"partly before the retention", fakeEventBridge{state: types.ArchiveStateEnabled}, 800 * time.Hour, 719 * time.Hour, true, "", ""},
		{"before the creation", fakeEventBridge{state: types.ArchiveStateEnabled, createdAgo: 2 * time.Hour}, 3 * time.Hour, 2 * time.Hour, false, fault.Missing, "before 2026-11-22T10:00:00Z"},
		{"since the creation", fakeEventBridge{state: types.ArchiveStateEnabled, createdAgo: 3 * time.Hour}, 3 * time.Hour, 2 * time.Hour, true, "", ""},
		{"created before the retention", fakeEventBridge{state: types.ArchiveStateEnabled, createdAgo: 900 * time.Hour}, 800 * time.Hour, 721 * time.Hour, false, fault.Missing, "before 2026-10-23T12:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var past replay.ArchivePart
			archive, err := replay.FindArchive(t.Context(), &test.of, plan, now)
			if err == nil {
				past, err = archive.SelectPart(t.Context(), &test.of, rule, now.Add(-test.from), now.Add(-test.to), now)
			}
			if fault.KindOf(err) != test.kind || err == nil && past.HasExpired() != test.noop || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%+v, %v", past, err)
			}
			if err == nil && (past.Events != 9 || past.Rule != rule.Name || past.Service != "lifecycle" || !past.ValidSince.Equal(now.Add(-time.Hour))) {
				t.Errorf("%+v", past)
			}
		})
	}
}

// TestReplayArchive waits for the end of a replay.
func TestReplayArchive(t *testing.T) {
	plan, rule := inboxRule(t)
	for _, test := range []struct {
		name                  string
		states                []types.ReplayState
		stop                  int
		cancelled, interrupts bool
		kind                  fault.Kind
	}{
		{"completes", []types.ReplayState{types.ReplayStateStarting, types.ReplayStateRunning, types.ReplayStateCompleted}, 0, false, false, ""},
		{"fails", []types.ReplayState{types.ReplayStateRunning, types.ReplayStateFailed}, 0, false, false, fault.Retry},
		{"interrupted", []types.ReplayState{types.ReplayStateRunning, types.ReplayStateCancelling, types.ReplayStateCancelled}, 2, true, true, ""},
		{"interrupted as it ends", []types.ReplayState{types.ReplayStateRunning, types.ReplayStateCompleted}, 2, true, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &fakeEventBridge{state: types.ArchiveStateEnabled, states: test.states}
			archive, err := replay.FindArchive(t.Context(), a, plan, now)
			if err != nil {
				t.Fatal(err)
			}
			past, err := archive.SelectPart(t.Context(), a, rule, now.Add(-2*time.Hour), now.Add(-time.Hour), now)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			pauses := 0
			p := replay.ArchiveReplayer{EventBridge: a, Prefix: "prod", Now: func() time.Time { return now }, Report: func(replay.ArchiveOutcome) {}, Pause: func(ctx context.Context, _ time.Duration) error {
				if pauses++; pauses == test.stop {
					stop()
				}
				return ctx.Err()
			}}
			did, err := p.Replay(ctx, past)
			if fault.KindOf(err) != test.kind || a.cancelled != test.cancelled || did.WasInterrupted() != test.interrupts {
				t.Errorf("%+v, %v, cancelled %t", did, err, a.cancelled)
			}
			if in := a.started; *in.EventSourceArn != "archive" || *in.Destination.Arn != "bus" || len(in.Destination.FilterArns) != 1 || in.Destination.FilterArns[0] != "rule" ||
				!in.EventStartTime.Equal(now.Add(-2*time.Hour)) || !in.EventEndTime.Equal(now.Add(-time.Hour)) || !strings.HasPrefix(*in.ReplayName, "prod-joist-") {
				t.Errorf("the request is %+v", in)
			}
		})
	}
}
