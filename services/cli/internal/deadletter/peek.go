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
	// peekVisibility is the visibility timeout of messages while they are read. It matters
	// only if the process is killed before it releases them.
	peekVisibility = 30 * time.Second
	// peekWait is the time of the long poll. SQS then asks all of its servers, so that an
	// empty answer means an empty queue.
	peekWait = time.Second
	// releaseTimeout bounds the release of messages, in addition to timePerMessage for each.
	releaseTimeout = 10 * time.Second
	// releaseConcurrency is the number of concurrent calls that release messages: at 100 ms a
	// call, 1,000 messages take 6 s.
	releaseConcurrency = 16
)

// PeekMessages reads up to limit messages of a DLQ and releases all of them. It
// reports whether these are all messages of the queue. It deletes nothing, but SQS counts a
// receive of each message. After each receive with new messages it calls progress, which may
// be nil, with the number of messages so far.
func PeekMessages(ctx context.Context, dead queue.Queue, limit int, progress func(read int)) (messages []queue.Message, all bool, err error) {
	seen := map[string]int{}
	defer func() {
		if releaseErr := ReleaseMessages(ctx, dead, messages); err == nil {
			err = releaseErr
		}
	}()
	for len(messages) < limit {
		got, err := dead.Receive(ctx, min(queue.MaxBatch, limit-len(messages)), peekWait, peekVisibility+time.Duration(limit)*timePerMessage)
		if err != nil {
			return messages, false, err
		}
		fresh := 0
		for _, m := range got {
			if at, again := seen[m.ID]; again {
				messages[at].Receipt = m.Receipt // The older receipt has expired.
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

// timePerMessage is added to the timeouts for each message: a receive takes about 20 ms and
// may return a single message.
const timePerMessage = 20 * time.Millisecond

// ReleaseMessages makes messages visible again, also after ctx has ended. It ignores messages
// that no longer exist.
func ReleaseMessages(ctx context.Context, dead queue.Queue, messages []queue.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout+time.Duration(len(messages))*timePerMessage)
	defer cancel()
	var calls sync.WaitGroup
	free, errs := make(chan struct{}, releaseConcurrency), make([]error, len(messages))
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
