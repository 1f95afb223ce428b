package interruption

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// The instances of the tests: an owned one, a foreign one, and one that EC2 does not
// return.
const (
	ownedID   = "i-0000000000000000a"
	foreignID = "i-0000000000000000b"
	missingID = "i-0000000000000000c"
)

var web = event.Cluster{Name: "web"}

var _ host.Handler = (&Service{}).Handle

// fixture is a service with an account of a few instances, and the published facts.
type fixture struct {
	Service
	now           time.Time
	instances     []cloud.Instance
	statuses      []cloud.Status
	describeCalls int
	published     []event.Envelope
}

func newFixture() *fixture {
	b := &fixture{now: start}
	b.instances = []cloud.Instance{
		{ID: ownedID, Type: "m6i.large", Zone: "us-west-2a", CapacityType: "spot", State: cloud.Running,
			Tags: map[string]string{"kubernetes.io/cluster/web": "owned", "karpenter.sh/nodepool": "default"}},
		{ID: foreignID, State: cloud.Running, Tags: map[string]string{"Name": "db"}},
	}
	b.EC2, b.Statuses, b.Bus, b.Cluster, b.Now = b, b, b, web, func() time.Time { return b.now }
	return b
}

func (b *fixture) DescribeInstances(_ context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	b.describeCalls++
	var out []cloud.Instance
	for _, i := range b.instances {
		if slices.Contains(f.IDs, i.ID) {
			out = append(out, i)
		}
	}
	return out, nil
}

func (b *fixture) DescribeStatus(context.Context) ([]cloud.Status, error) { return b.statuses, nil }

func (b *fixture) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.published = append(b.published, e)
	}
	return nil
}

// deliverEvent delivers an AWS event about an instance.
func (b *fixture) deliverEvent(t *testing.T, detailType, id, detail string) error {
	t.Helper()
	body := fmt.Sprintf(`{"version":"0","id":"e","detail-type":%q,"source":"aws.ec2","account":"123456789012","time":%q,`+
		`"region":"us-west-2","resources":["arn:aws:ec2:us-west-2:123456789012:instance/%s"],"detail":{"instance-id":%q%s}}`,
		detailType, start.Format(time.RFC3339), id, id, detail)
	return b.Handle(t.Context(), queue.Message{ID: "m", Body: []byte(body), Receives: 1})
}

// publishedTypes returns the types of the published facts.
func (b *fixture) publishedTypes() []event.Type {
	var out []event.Type
	for _, e := range b.published {
		out = append(out, e.Type)
	}
	return out
}

const (
	spotType      = "EC2 Spot Instance Interruption Warning"
	rebalanceType = "EC2 Instance Rebalance Recommendation"
	stateType     = "EC2 Instance State-change Notification"
)

func decodeBody[T event.Body](t *testing.T, e event.Envelope) T {
	t.Helper()
	b, err := event.DecodeBody[T](e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
