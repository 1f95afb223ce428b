package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

// launchResultBatchSize is how many launch results share a turn. A plan for a thousand nodes has about fifty intents.
const launchResultBatchSize = 64

// launchResultMessage is one message with a launch result, and the error of its handling.
type launchResultMessage struct {
	// ctx is the context of the message; its log fields go to the message's log line.
	ctx      context.Context
	envelope event.Envelope
	intent   string
	received time.Time
	err      error
}

// newLaunchResultQueue returns the handler of launch results. Results that arrive during a turn are handled together in the
// next one: those of different intents concurrently, because they bind other claims, and those of one intent in order.
func (s *Service) newLaunchResultQueue(turn runInTurn) func(ctx context.Context, e event.Envelope, came time.Time) error {
	batches := batcher.New(batcher.Options[*launchResultMessage]{
		MaxCalls: 1, MaxItems: launchResultBatchSize, Call: func(ctx context.Context, messages []*launchResultMessage) error {
			return turn(ctx, func(ctx context.Context) error {
				s.handleLaunchResults(ctx, messages)
				return nil
			})
		},
	})
	return func(ctx context.Context, e event.Envelope, came time.Time) error {
		body, err := event.DecodeBody[event.LaunchSettled](e)
		if err != nil {
			return err
		}
		m := &launchResultMessage{ctx: ctx, envelope: e, intent: body.Intent, received: came}
		if err := batches.Do(ctx, m); err != nil {
			return err
		}
		return m.err
	}
}

// handleLaunchResults handles the launch results of one turn and sets the error of each. A panic affects only its own intent.
func (s *Service) handleLaunchResults(ctx context.Context, messages []*launchResultMessage) {
	var intents [][]*launchResultMessage
	known := map[string]int{}
	for _, m := range messages {
		host.AddLogFields(m.ctx, "batch_size", len(messages), "waited_ms", s.Now().Sub(m.received).Milliseconds())
		n, is := known[m.intent]
		if !is {
			n, known[m.intent], intents = len(intents), len(intents), append(intents, nil)
		}
		intents[n] = append(intents[n], m)
		m.err = fmt.Errorf("handling the launch of intent %s: the turn has ended", m.intent)
	}
	s.shiftState() // It is created on first use, which is not safe for concurrent use.
	failures := s.executor.ForEach(len(intents), func(i int) error {
		for _, m := range intents[i] {
			own, cancel := context.WithCancel(m.ctx)
			release := context.AfterFunc(ctx, cancel)
			m.err = s.handleWithTimeout(own, m.envelope)
			release()
			cancel()
		}
		return nil
	})
	for i, err := range failures {
		if err == nil {
			continue
		}
		for _, m := range intents[i] {
			m.err = err // It panicked.
		}
	}
}
