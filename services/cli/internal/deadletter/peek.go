package deadletter

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// lookTime is for how long messages are hidden while they are looked at, should
	// nobody live to give them back.
	lookTime = 30 * time.Second
	// lookWait is the long poll by which SQS asks all of its servers, so that an
	// empty answer means an empty queue.
	lookWait = time.Second
	// giveBackTime is how long giving messages back may take, beside perMessage for each.
	giveBackTime = 10 * time.Second
	// giveBackCalls is how many calls give messages back at the same time: with 100 ms a call,
	// 1,000 messages take 6 s. SQS has no limit for standard queues that these come near.
	giveBackCalls = 16
)

// Peek reads up to limit messages of a dead-letter queue and gives all of them back.
// All reports whether those were all that it holds. Nothing is deleted; SQS counts a
// receive of each. After each call that brought messages, Look reports to progress how
// many it has read so far; progress may be nil.
func Peek(ctx context.Context, dead queue.Queue, limit int, progress func(read int)) (messages []queue.Message, all bool, err error) {
	seen := map[string]int{}
	defer func() {
		if back := GiveBack(ctx, dead, messages); err == nil {
			err = back
		}
	}()
	for len(messages) < limit {
		got, err := dead.Receive(ctx, min(queue.MaxBatch, limit-len(messages)), lookWait, lookTime+time.Duration(limit)*perMessage)
		if err != nil {
			return messages, false, err
		}
		fresh := 0
		for _, m := range got {
			if at, again := seen[m.ID]; again {
				messages[at].Receipt = m.Receipt // The old one is good no longer.
				continue
			}
			seen[m.ID] = len(messages)
			messages = append(messages, m)
			fresh++
		}
		if fresh == 0 {
			return messages, true, nil
		}
		if progress != nil {
			progress(len(messages))
		}
	}
	return messages, false, nil
}

// perMessage is how much longer messages stay hidden for each that is to be read: a
// call takes some 20 ms and brings one at the worst.
const perMessage = 20 * time.Millisecond

// GiveBack makes messages visible again, whether or not ctx still holds: who looked is
// not to hide them from others. One that is gone needs none.
func GiveBack(ctx context.Context, dead queue.Queue, messages []queue.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime+time.Duration(len(messages))*perMessage)
	defer cancel()
	var calls sync.WaitGroup
	free, errs := make(chan struct{}, giveBackCalls), make([]error, len(messages))
	for i, m := range messages {
		free <- struct{}{}
		calls.Go(func() {
			if err := dead.Hide(ctx, m.Receipt, 0); !fault.Is(err, fault.Missing) {
				errs[i] = err
			}
			<-free
		})
	}
	calls.Wait()
	return cmp.Or(errs...)
}
