package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// CallLimit is the timeout of one call to EC2 or the bus. Both usually answer within
	// half a second; a call without an answer must not block others.
	CallLimit = 2 * time.Second
	// BusLanes is how many calls to the bus are in flight at a time. A batch of ten
	// messages may have more than ten facts and then needs two calls.
	BusLanes = 8
	// quickRetries is how often a message is retried after one second. SQS moves it to the
	// DLQ after a hundred receives, so an outage of a minute leaves receives
	// for later retries.
	quickRetries = 70
)

// Options returns the polling options of the queue. They handle a burst of spot warnings in
// seconds, and the first message within two seconds after an outage: a spot instance is reclaimed
// after 120 s.
//
// At 10 ms for each call to the queue, eight receivers receive and delete 8,000 messages a second;
// at 30 ms for each message, 512 parallel messages are enough for twice that.
func Options() host.Options {
	return host.Options{
		MaxConcurrent: 512, Receivers: 8, MaxCalls: 8, Deadline: 5 * time.Second, Visibility: 30 * time.Second, MaxRetryPause: time.Second, Backoff: RetryDelay,
	}
}

// RetryDelay returns how long a message that must be retried stays hidden.
func RetryDelay(m queue.Message) time.Duration {
	if m.Receives <= quickRetries {
		return time.Second
	}
	return host.Backoff(m)
}
