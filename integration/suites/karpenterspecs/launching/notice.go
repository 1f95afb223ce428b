package launching

import (
	"context"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// NoticeFacts is what Joist's interruption service publishes about a message of AWS.
type NoticeFacts struct {
	// Kind is "" if the service publishes nothing.
	Kind event.NoticeKind
	// Gone is set if the instances are terminated.
	Gone      bool
	Detail    string
	Instances []string
}

// ReadNotice passes the body of a message to the interruption service. All instances belong to the cluster, and are in
// the state that the message says. An error is that of a message that the service moves to its dead-letter queue.
func ReadNotice(ctx context.Context, body string) (NoticeFacts, error) {
	bus := &recordingBus{}
	service := &interruption.Service{EC2: ownInstances{body}, Bus: bus, Cluster: event.Cluster{Name: "specs", UID: "specs"}, Now: time.Now}
	err := service.Handle(ctx, queue.Message{ID: "specs", Body: []byte(body), Sent: time.Now()})
	if err != nil && !fault.Is(err, fault.Foreign, fault.Stale) {
		return NoticeFacts{}, err
	}
	var out NoticeFacts
	for _, e := range bus.published {
		switch e.Type {
		case event.NodeNoticedType:
			fact, err := event.DecodeBody[event.NodeNoticed](e)
			if err != nil {
				return out, err
			}
			out.Kind, out.Detail, out.Instances = fact.Kind, fact.Detail, append(out.Instances, fact.InstanceID)
		case event.InstanceGoneType:
			fact, err := event.DecodeBody[event.InstanceGone](e)
			if err != nil {
				return out, err
			}
			out.Gone, out.Instances = true, []string{fact.InstanceID}
		}
	}
	return out, nil
}

// ownInstances is an account in which every instance belongs to the cluster. It has the message.
type ownInstances struct {
	body string
}

// DescribeInstances returns an instance for each id.
func (o ownInstances) DescribeInstances(_ context.Context, f cloud.InstanceFilter) ([]cloud.Instance, error) {
	state := cloud.Running
	if strings.Contains(o.body, `"terminated"`) {
		state = cloud.Terminated
	}
	var out []cloud.Instance
	for _, id := range f.IDs {
		out = append(out, cloud.Instance{ID: id, Type: "m5.large", Zone: "test-zone-1a", CapacityType: cloud.Spot, State: state, Tags: map[string]string{
			"kubernetes.io/cluster/specs": "owned", "karpenter.sh/nodepool": "default",
		}})
	}
	return out, nil
}
