package noticetest

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// base is a genuine event, from which variants are made.
type base struct {
	name  string
	event object
	// detail is the event's detail, which variants change and put back.
	detail object

	kind      event.NoticeKind
	instances []string
	deadline  time.Duration
	want      ExpectedResult
}

// The two forms of an instance's ARN: arn is the usual one; spotARN, of the spot warning, has a zone in place of the
// region and no account (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html).
func arn(id string) string     { return "arn:aws:ec2:" + Region + ":" + Account + ":instance/" + id }
func spotARN(id string) string { return "arn:aws:ec2:" + Region + "b:instance/" + id }

// event returns an EventBridge event.
func (c *corpus) event(source, detailType, resources string, detail object) object {
	return object{
		{"version", `"0"`},
		{"id", `"12345678-1234-1234-1234-123456789012"`},
		{"detail-type", quote(detailType)},
		{"source", quote(source)},
		{"account", quote(Account)},
		{"time", quote(c.sent.Add(-age).Format(time.RFC3339))},
		{"region", quote(Region)},
		{"resources", resources},
		{"detail", string(detail.text())},
	}
}

// of returns a base about the cluster's own instances.
func (c *corpus) of(name, source, detailType, resources string, detail object, kind event.NoticeKind, deadline time.Duration, ids ...string) base {
	return base{
		name: name, event: c.event(source, detailType, resources, detail), detail: detail,
		kind: kind, instances: ids, deadline: deadline, want: Act,
	}
}

const (
	spotType        = "EC2 Spot Instance Interruption Warning"
	rebalanceType   = "EC2 Instance Rebalance Recommendation"
	stateType       = "EC2 Instance State-change Notification"
	healthType      = "AWS Health Event"
	reservationType = "EC2 Capacity Reservation Instance Interruption Warning"
	// The documentation of interruptible reservations uses this name.
	interruptibleType = "EC2 Interruptible Capacity Reservation Instance Interruption Warning"
)

// warnings are the spot warning with both forms of the ARN.
func (c *corpus) warnings() []base {
	id := Ours[0]
	detail := object{{"instance-id", quote(id)}, {"instance-action", `"terminate"`}}
	return []base{
		c.of("spot", "aws.ec2", spotType, quoted(spotARN(id)), detail, event.SpotInterruption, notice-age, id),
		c.of("spot with a whole ARN", "aws.ec2", spotType, quoted(arn(id)), detail, event.SpotInterruption, notice-age, id),
	}
}

// bases are the genuine events.
func (c *corpus) bases() []base {
	id := Ours[0]
	all := append(c.warnings(),
		c.of("rebalance", "aws.ec2", rebalanceType, quoted(arn(id)), object{{"instance-id", quote(id)}}, event.RebalanceRecommendation, DeadlineNone, id))
	for _, state := range []string{"stopping", "stopped", "shutting-down"} {
		all = append(all, c.state(state, id))
	}
	all = append(all, c.state("terminated", Ended), c.maintenance(id), c.maintenance(Ours...))
	for _, typ := range []string{reservationType, interruptibleType} {
		all = append(all, c.reservation(typ))
	}
	return all
}

func (c *corpus) state(state, id string) base {
	detail := object{{"instance-id", quote(id)}, {"state", quote(state)}}
	return c.of("state "+state, "aws.ec2", stateType, quoted(arn(id)), detail, event.StateChange, DeadlineNone, id)
}

// maintenance is a scheduled change of AWS Health. It also lists the affected instances in resources.
func (c *corpus) maintenance(ids ...string) base {
	var entities []string
	for _, id := range ids {
		entities = append(entities, string(object{{"entityValue", quote(id)}}.text()))
	}
	detail := object{
		{"eventArn", quote("arn:aws:health:" + Region + "::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/1")},
		{"service", `"EC2"`},
		{"eventTypeCode", `"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"`},
		{"eventTypeCategory", `"scheduledChange"`},
		{"startTime", `"Wed, 27 Jan 2027 01:43:21 GMT"`},
		{"affectedEntities", list(entities...)},
	}
	return c.of(fmt.Sprintf("health of %d", len(ids)), "aws.health", healthType, quoted(ids...), detail, event.ScheduledChange, DeadlineNone, ids...)
}

func (c *corpus) reservation(detailType string) base {
	id, name := Ours[0], "reservation"
	if detailType == interruptibleType {
		name = "interruptible reservation"
	}
	detail := object{{"instance-id", quote(id)}, {"instance-action", `"terminate"`}, {"instance-termination-time", `""`}}
	return c.of(name, "aws.ec2", detailType, quoted(arn(id)), detail, event.ReservationInterruption, notice-age, id)
}

// inside returns the base's event with another detail.
func (b base) inside(detail object) object { return b.event.with("detail", string(detail.text())) }

// due returns the base with another deadline, if it has a deadline.
func (b base) due(deadline time.Duration) base {
	if b.deadline != DeadlineNone {
		b.deadline = deadline
	}
	return b
}

// about returns the base with other affected instances.
func (b base) about(ids ...string) base {
	b.instances = ids
	return b
}
