// Package queues tells how full the queues of a cluster are, and how long the oldest
// message has waited.
//
// SQS counts approximately, and knows no ages: those are CloudWatch's, a minute or two
// old. What cannot be asked is left out and said, for half an answer is worth more than
// none while something is wrong.
package queues

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Row is one queue, as `joist queues -o json` prints it.
type Row struct {
	Service string `json:"service"`
	// Queue is its name in SQS; empty for the audit log, which has dead letters alone.
	Queue string `json:"queue"`
	// Waiting, InFlight and Delayed are what the queue holds, approximately.
	Waiting  int `json:"waiting"`
	InFlight int `json:"inFlight"`
	Delayed  int `json:"delayed"`
	// OldestSeconds is the age of the oldest message, as CloudWatch last saw it; left
	// out where that is not known.
	OldestSeconds *int `json:"oldestSeconds,omitempty"`
	// Dead is how many dead letters there are, in flight or not, and DeadQueue where.
	Dead      int    `json:"dead"`
	DeadQueue string `json:"deadQueue"`
	// OldestReason is that of the oldest dead letter among the first few.
	OldestReason string `json:"oldestReason,omitempty"`
	// Problem says what could not be looked at, and how to mend that.
	Problem string `json:"problem,omitempty"`
}

// few is how many dead letters are looked at for a reason.
const few = 10

// Inspector looks at queues.
type Inspector struct {
	Places Places
	// Ages tells the ages of the oldest messages, by the queues' names.
	Ages func(ctx context.Context, names []string) (map[string]time.Duration, error)
	Now  func() time.Time
}

// Inspect looks at all queues at the same time. Rows come in the order of the queues, and
// with them an error of CloudWatch's, which takes nothing from the rest.
func (l Inspector) Inspect(ctx context.Context, cluster string, list []topology.Queue) (rows []Row, ageless error) {
	rows = make([]Row, len(list))
	var ages map[string]time.Duration
	var all sync.WaitGroup
	all.Go(func() {
		var names []string
		for _, q := range list {
			if q.Name != "" {
				names = append(names, q.Name)
			}
		}
		ages, ageless = l.Ages(ctx, names)
	})
	for i, q := range list {
		all.Go(func() { rows[i] = l.inspectQueue(ctx, cluster, q) })
	}
	all.Wait()
	for i := range rows {
		if age, known := ages[rows[i].Queue]; known && rows[i].Problem == "" {
			seconds := int(age / time.Second)
			rows[i].OldestSeconds = &seconds
		}
	}
	return rows, ageless
}

func (l Inspector) inspectQueue(ctx context.Context, cluster string, q topology.Queue) Row {
	row := Row{Service: q.Service, Queue: q.Name, DeadQueue: q.Dead}
	if q.Name != "" {
		found, err := l.Places.Find(ctx, q.Name)
		if err != nil {
			row.Problem = ErrorText(err)
			return row
		}
		row.Waiting, row.InFlight, row.Delayed = countMessages(found)
	}
	dead, err := l.Places.Find(ctx, q.Dead)
	if err != nil {
		row.Problem = ErrorText(err)
		return row
	}
	row.Dead = dead.Messages()
	if waiting, _, _ := countMessages(dead); waiting == 0 {
		return row
	}
	messages, _, err := deadletter.Peek(ctx, dead.Queue, few, nil)
	if err != nil {
		row.Problem = ErrorText(err)
	}
	var letters []deadletter.DeadLetter
	for _, m := range messages {
		letters = append(letters, deadletter.Reader{Service: q.Service, Cluster: event.Cluster{Name: cluster}}.Read(m, l.Now()))
	}
	if len(letters) > 0 {
		row.OldestReason = slices.MinFunc(letters, deadletter.CompareAge).Reason
	}
	return row
}

// countMessages reads the approximate numbers of messages.
func countMessages(p Place) (waiting, inFlight, delayed int) {
	number := func(name types.QueueAttributeName) int {
		n, _ := strconv.Atoi(p.Attributes[string(name)])
		return n
	}
	return number(types.QueueAttributeNameApproximateNumberOfMessages),
		number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible),
		number(types.QueueAttributeNameApproximateNumberOfMessagesDelayed)
}

// ErrorText is an error in one line with its remedy.
func ErrorText(err error) string {
	text := awsfault.Text(err)
	if hint := fault.HintOf(err); hint != "" {
		text += "; try: " + hint
	}
	return strings.Join(strings.Fields(text), " ")
}
