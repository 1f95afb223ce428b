package notice

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	firstID  = "i-0123456789abcdef0"
	secondID = "i-0123456789abcdef1"
	firstARN = "arn:aws:ec2:us-east-2:123456789012:instance/" + firstID
)

// The time of the event, and the SentTimestamp of its message.
var (
	eventTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	sentTime  = eventTime.Add(time.Second)
)

func parseEvent(data []byte) (Notice, error) {
	var d Document
	if err := d.ReadHeader(data); err != nil {
		return Notice{}, err
	}
	if d.IsEnvelope() {
		return Notice{}, fault.F("reading", fault.Poison, "an envelope")
	}
	var n Notice
	if err := d.ReadNotice(sentTime, &n); err != nil {
		return Notice{}, err
	}
	return n, nil
}

// rawEvent returns an event in the form of EventBridge.
func rawEvent(source, detailType, resource, detail string) string {
	return fmt.Sprintf(`{"version":"0","id":"e-1","detail-type":%q,"source":%q,"account":"123456789012",`+
		`"time":"2026-11-20T12:00:00Z","region":"us-east-2","resources":[%q],"detail":%s}`, detailType, source, resource, detail)
}

const (
	spotType        = "EC2 Spot Instance Interruption Warning"
	rebalanceType   = "EC2 Instance Rebalance Recommendation"
	stateType       = "EC2 Instance State-change Notification"
	healthType      = "AWS Health Event"
	reservationType = "EC2 Capacity Reservation Instance Interruption Warning"
)

func instanceDetail(rest string) string { return `{"instance-id":"` + firstID + `"` + rest + `}` }

func TestParse(t *testing.T) {
	notice := func(kind event.NoticeKind, detail string, deadline time.Time) Notice {
		return Notice{
			Kind: kind, EventID: "e-1", Instances: []string{firstID}, Noticed: eventTime, Deadline: deadline, Detail: detail,
			Account: "123456789012", Region: "us-east-2",
		}
	}
	stopping := notice(event.StateChange, "stopping", time.Time{})
	stopping.State = cloud.Stopping
	long := notice(event.SpotInterruption, strings.Repeat("x", maxTextBytes)+"…", eventTime.Add(2*time.Minute))
	both := notice(event.ScheduledChange, "AWS_EC2_X", time.Time{})
	both.Instances = []string{firstID, secondID}
	health := `{"service":"EC2","eventTypeCategory":"scheduledChange","eventTypeCode":"AWS_EC2_X","affectedEntities":[` +
		`{"entityValue":"` + firstID + `"},{"entityValue":"vol-1"},{"entityValue":"` + firstID + `"},{"entityValue":"` + secondID + `"},{"entityValue":"` + firstID + `"}]}`
	for _, tt := range []struct {
		name string
		raw  string
		want Notice
	}{
		{"spot, with a zone in the ARN like AWS",
			rawEvent("aws.ec2", spotType, "arn:aws:ec2:us-east-2a:instance/"+firstID, instanceDetail(`,"instance-action":"terminate"`)),
			notice(event.SpotInterruption, "terminate", eventTime.Add(2*time.Minute))},
		{"spot, with an ordinary ARN", rawEvent("aws.ec2", spotType, firstARN, instanceDetail(`,"instance-action":"stop"`)),
			notice(event.SpotInterruption, "stop", eventTime.Add(2*time.Minute))},
		{"a long action", rawEvent("aws.ec2", spotType, firstARN, instanceDetail(`,"instance-action":"`+strings.Repeat("x", maxTextBytes+1)+`"`)), long},
		{"another partition", rawEvent("aws.ec2", spotType, strings.Replace(firstARN, "aws:", "aws-cn:", 1), instanceDetail("")),
			notice(event.SpotInterruption, "", eventTime.Add(2*time.Minute))},
		{"rebalance", rawEvent("aws.ec2", rebalanceType, firstARN, instanceDetail("")), notice(event.RebalanceRecommendation, "", time.Time{})},
		{"state", rawEvent("aws.ec2", stateType, firstARN, instanceDetail(`,"state":"stopping"`)), stopping},
		{"health", rawEvent("aws.health", healthType, firstID, health), both},
		{"health with an ARN", rawEvent("aws.health", healthType, firstARN, health), both},
		{"reservation", rawEvent("aws.ec2", reservationType, firstARN, instanceDetail(`,"instance-action":"terminate","instance-termination-time":"2026-11-20T12:01:00Z"`)),
			notice(event.ReservationInterruption, "terminate", eventTime.Add(time.Minute))},
		{"a later end does not move the deadline", rawEvent("aws.ec2", reservationType, firstARN, instanceDetail(`,"instance-termination-time":"2026-11-20T18:00:00Z"`)),
			notice(event.ReservationInterruption, "", eventTime.Add(2*time.Minute))},
		{"an invalid end is ignored", rawEvent("aws.ec2", reservationType, firstARN, instanceDetail(`,"instance-termination-time":"soon"`)),
			notice(event.ReservationInterruption, "", eventTime.Add(2*time.Minute))},
		{"one resource without a list", strings.Replace(rawEvent("aws.ec2", rebalanceType, firstARN, instanceDetail("")), `["`+firstARN+`"]`, `"`+firstARN+`"`, 1),
			notice(event.RebalanceRecommendation, "", time.Time{})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseEvent([]byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("notice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	want := []event.NoticeKind{event.StateChange, event.SpotInterruption, event.RebalanceRecommendation, event.ScheduledChange, event.ReservationInterruption}
	if diff := cmp.Diff(want, Kinds()); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// FuzzParse requires a complete notice, or fault.Poison or fault.Foreign.
func FuzzParse(f *testing.F) {
	f.Add([]byte(rawEvent("aws.ec2", spotType, firstARN, instanceDetail(""))))
	f.Add([]byte(rawEvent("aws.ec2", stateType, firstARN, instanceDetail(`,"state":"stopped"`))))
	f.Add([]byte(rawEvent("aws.health", healthType, firstID, `{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"`+firstID+`"}]}`)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := parseEvent(data)
		if err != nil {
			if !fault.Is(err, fault.Poison, fault.Foreign) {
				t.Fatalf("kind %s: %v", fault.KindOf(err), err)
			}
			return
		}
		if n.Noticed.After(sentTime) || n.Deadline.After(sentTime.Add(WarningPeriod)) || !n.Deadline.IsZero() && n.Deadline.Before(n.Noticed) {
			t.Fatalf("noticed %s, with the deadline %s", n.Noticed, n.Deadline)
		}
		if n.Kind == "" || len(n.Instances) == 0 || n.Noticed.IsZero() {
			t.Fatalf("an incomplete notice: %+v", n)
		}
		for _, id := range n.Instances {
			if !isInstance([]byte(id)) {
				t.Fatalf("invalid instance ID %q", id)
			}
		}
	})
}

func TestFromStatus(t *testing.T) {
	due, now := eventTime, eventTime.Add(3*time.Second)
	impaired := func(ago time.Duration) cloud.Status {
		return cloud.Status{InstanceID: firstID, Impaired: now.Add(-ago)}
	}
	planned := func(codes ...string) cloud.Status {
		s := cloud.Status{InstanceID: firstID}
		for _, code := range codes {
			s.Events = append(s.Events, cloud.ScheduledEvent{Code: code, NotBefore: now.Add(time.Hour)})
		}
		return s
	}
	change := func(code string) Notice {
		return Notice{Kind: event.ScheduledChange, Instances: []string{firstID}, Noticed: due, Detail: code}
	}
	for _, tt := range []struct {
		name   string
		status cloud.Status
		want   []Notice
	}{
		{"healthy", cloud.Status{InstanceID: firstID}, nil},
		{"impaired for a moment", impaired(ImpairedAfter - 1), nil},
		{"impaired for long", impaired(ImpairedAfter), []Notice{{
			Kind: event.StatusImpaired, Instances: []string{firstID}, Noticed: now.Add(-ImpairedAfter), Deadline: now, Detail: "impaired",
		}}},
		{"impaired without a start", cloud.Status{InstanceID: firstID, Undated: true}, []Notice{{
			Kind: event.StatusImpaired, Instances: []string{firstID}, Noticed: due, Deadline: due, Detail: "impaired",
		}}},
		{"maintenance", planned("system-maintenance", "system-maintenance", "instance-stop"), []Notice{change("system-maintenance"), change("instance-stop")}},
		{"an event of no interest", planned("volume-retirement"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, FromStatus(tt.status, due, now)); diff != "" {
				t.Fatalf("notices (-want +got):\n%s", diff)
			}
		})
	}
}
