package interrupted

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// The account, region and cluster of the messages.
const (
	account = "123456789012"
	region  = "us-west-2"
	cluster = "web"
)

// Message is one AWS event about one instance.
type Message struct {
	Body     []byte
	Instance string
	// State is the instance's state in EC2.
	State cloud.State
	// Known is set for the cluster's instances.
	Known bool
}

// states are the states in Karpenter's benchmark.
var states = []cloud.State{cloud.Stopping, cloud.Stopped, cloud.ShuttingDown, cloud.Terminated}

// Mix returns n messages of the current time: a third of each kind, alternately, of which
// the given percentage is about the cluster's instances.
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

// written returns an event in EventBridge's envelope.
func written(i int, now time.Time, source, detailType, id, detail string) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":"00000000-0000-0000-0000-%012d","detail-type":%q,"source":%q,"account":%q,"time":%q,"region":%q,`+
		`"resources":["arn:aws:ec2:%s:%s:instance/%s"],"detail":%s}`,
		i, detailType, source, account, now.UTC().Format(time.RFC3339), region, region, account, id, detail)
}
