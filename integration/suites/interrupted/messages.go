package interrupted

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// Where the messages come from.
const (
	account = "123456789012"
	region  = "us-west-2"
	cluster = "web"
)

// Message is one event of AWS about one instance.
type Message struct {
	Body     []byte
	Instance string
	// State is what EC2 shows of the instance when it is asked.
	State cloud.State
	// Known instances are the cluster's.
	Known bool
}

// states are those of Karpenter's benchmark.
var states = []cloud.State{cloud.Stopping, cloud.Stopped, cloud.ShuttingDown, cloud.Terminated}

// Mix is n messages, a third of each kind and in turns, of which so many in a
// hundred are about instances of the cluster. They are said now.
func Mix(n, known int, now time.Time) []Message {
	out := make([]Message, n)
	for i := range out {
		m := Message{Instance: fmt.Sprintf("i-%017x", i+1), State: cloud.Running, Known: i%100 < known}
		switch i % 3 {
		case 0:
			m.Body = written(i, now, "aws.health", "AWS Health Event", m.Instance, fmt.Sprintf(
				`{"service":"EC2","eventTypeCategory":"scheduledChange","eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",`+
					`"eventArn":"arn:aws:health:%s::event/EC2/X/%d","affectedEntities":[{"entityValue":%q}]}`, region, i, m.Instance))
		case 1:
			m.Body = written(i, now, "aws.ec2", "EC2 Spot Instance Interruption Warning", m.Instance,
				fmt.Sprintf(`{"instance-id":%q,"instance-action":"terminate"}`, m.Instance))
		default:
			m.State = states[i/3%len(states)]
			m.Body = written(i, now, "aws.ec2", "EC2 Instance State-change Notification", m.Instance,
				fmt.Sprintf(`{"instance-id":%q,"state":%q}`, m.Instance, m.State))
		}
		out[i] = m
	}
	return out
}

// written is an event in the envelope of EventBridge.
func written(i int, now time.Time, source, detailType, id, detail string) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":"00000000-0000-0000-0000-%012d","detail-type":%q,"source":%q,"account":%q,"time":%q,"region":%q,`+
		`"resources":["arn:aws:ec2:%s:%s:instance/%s"],"detail":%s}`,
		i, detailType, source, account, now.UTC().Format(time.RFC3339), region, region, account, id, detail)
}
