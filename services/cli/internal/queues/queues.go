// Package queues reads the depths of a cluster's queues and the ages of their oldest messages.
//
// SQS reports approximate numbers and no ages. CloudWatch reports the ages, one or two minutes
// late. A failed read becomes a note in the result, because the other values are still useful
// during an incident.
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
	// Queue is the name in SQS; empty for the audit log, which has only a DLQ.
	Queue string `json:"queue"`
	// Waiting, InFlight and Delayed are approximate numbers of messages.
	Waiting  int `json:"waiting"`
	InFlight int `json:"inFlight"`
	Delayed  int `json:"delayed"`
	// OldestSeconds is the age of the oldest message according to CloudWatch, without messages that were received
	// three or more times; nil if unknown.
	OldestSeconds *int `json:"oldestSeconds,omitempty"`
	// DeadLetters is the number of messages in the DLQ, and DeadLetterQueue its name.
	DeadLetters     int    `json:"deadLetters"`
	DeadLetterQueue string `json:"deadLetterQueue"`
	// OldestReason is the reason of the oldest of the first DLQ messages.
	OldestReason string `json:"oldestReason,omitempty"`
	// Problem is the error of a failed read, with its hint.
	Problem string `json:"problem,omitempty"`
}

// sampleSize is the number of DLQ messages that are read for OldestReason.
const sampleSize = 10

// Inspector reads queues.
type Inspector struct {
	Finder QueueFinder
	// Ages reads the ages of the oldest messages, by queue name.
	Ages func(ctx context.Context, names []string) (map[string]time.Duration, error)
	Now  func() time.Time
}

// Inspect reads all queues concurrently. It returns the rows in the order of the queues, and
// the error of reading the ages.
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
	row := Row{Service: q.Service, Queue: q.Name, DeadLetterQueue: q.Dead}
	if q.Name != "" {
		found, err := l.Finder.Find(ctx, q.Name)
		if err != nil {
			row.Problem = FormatError(err)
			return row
		}
		row.Waiting, row.InFlight, row.Delayed = countMessages(found)
	}
	dead, err := l.Finder.Find(ctx, q.Dead)
	if err != nil {
		row.Problem = FormatError(err)
		return row
	}
	row.DeadLetters = dead.MessageCount()
	if waiting, _, _ := countMessages(dead); waiting == 0 {
		return row
	}
	messages, _, err := deadletter.PeekMessages(ctx, dead.Client, sampleSize, nil)
	if err != nil {
		row.Problem = FormatError(err)
	}
	var deadMessages []deadletter.DeadMessage
	for _, m := range messages {
		deadMessages = append(deadMessages, deadletter.Reader{Service: q.Service, Cluster: event.Cluster{Name: cluster}}.Read(m, l.Now()))
	}
	if len(deadMessages) > 0 {
		row.OldestReason = slices.MinFunc(deadMessages, deadletter.CompareAge).Reason
	}
	return row
}

// countMessages returns the approximate numbers of messages.
func countMessages(p FoundQueue) (waiting, inFlight, delayed int) {
	number := func(name types.QueueAttributeName) int {
		n, _ := strconv.Atoi(p.Attributes[string(name)])
		return n
	}
	return number(types.QueueAttributeNameApproximateNumberOfMessages),
		number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible),
		number(types.QueueAttributeNameApproximateNumberOfMessagesDelayed)
}

// FormatError formats an error with its hint in one line.
func FormatError(err error) string {
	text := awsfault.ErrorText(err)
	if hint := fault.FindHint(err); hint != "" {
		text += "; try: " + hint
	}
	return strings.Join(strings.Fields(text), " ")
}
