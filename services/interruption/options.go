package interruption

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const (
	// CallLimit is how long one call to EC2 or the bus may take. Both answer within
	// half a second; what takes longer is lost, and a lane must not be lost to it.
	CallLimit = 2 * time.Second
	// BusLanes is how many calls to the bus are under way at a time. A batch of ten
	// messages may have a few facts more than ten, and then needs two.
	BusLanes = 8
	// quickRetries is how often a message comes again after a second each time. SQS parks
	// it after a hundred receives, so an outage of a minute leaves some for what
	// follows.
	quickRetries = 70
)

// Options are how its queue is polled: a storm of warnings in seconds, and the
// first message within two seconds of an outage. A spot instance has 120 s.
//
// At 10 ms for a call to the queue, eight receivers bring 8,000 messages a
// second, and as many are deleted; at 30 ms for a message in all, 512 are enough
// for twice that.
func Options() host.Options {
	return host.Options{
		Parallel: 512, Receivers: 8, Lanes: 8, Deadline: 5 * time.Second, Visibility: 30 * time.Second, Pause: time.Second, Again: RetryDelay,
	}
}

// RetryDelay is how long a message stays hidden that is to be tried again.
func RetryDelay(m queue.Message) time.Duration {
	if m.Receives <= quickRetries {
		return time.Second
	}
	return host.Backoff(m)
}
