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
	one = "i-0123456789abcdef0"
	two = "i-0123456789abcdef1"
	arn = "arn:aws:ec2:us-east-2:123456789012:instance/" + one
)

// The time of the event, and when the queue took it.
var (
	said  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	taken = said.Add(time.Second)
)

func parse(data []byte) (Notice, error) {
	var d Document
	if err := d.Open(data); err != nil {
		return Notice{}, err
	}
	if d.Ours() {
		return Notice{}, fault.F("reading", fault.Poison, "an envelope")
	}
	var n Notice
	if err := d.Notice(taken, &n); err != nil {
		return Notice{}, err
	}
	return n, nil
}

// raw writes an event as EventBridge does.
func raw(source, detailType, resource, detail string) string {
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

func ofOne(rest string) string { return `{"instance-id":"` + one + `"` + rest + `}` }

func TestParse(t *testing.T) {
	notice := func(kind event.NoticeKind, detail string, deadline time.Time) Notice {
		return Notice{
			Kind: kind, EventID: "e-1", Instances: []string{one}, Noticed: said, Deadline: deadline, Detail: detail,
			Account: "123456789012", Region: "us-east-2",
		}
	}
	stopping := notice(event.StateChange, "stopping", time.Time{})
	stopping.State = cloud.Stopping
	both := notice(event.ScheduledChange, "AWS_EC2_X", time.Time{})
	both.Instances = []string{one, two}
	health := `{"service":"EC2","eventTypeCategory":"scheduledChange","eventTypeCode":"AWS_EC2_X","affectedEntities":[` +
		`{"entityValue":"` + one + `"},{"entityValue":"vol-1"},{"entityValue":"` + two + `"},{"entityValue":"` + one + `"}]}`
	for _, tt := range []struct {
		name string
		raw  string
		want Notice
	}{
		{"spot, with a zone in the ARN as AWS writes it",
			raw("aws.ec2", spotType, "arn:aws:ec2:us-east-2a:instance/"+one, ofOne(`,"instance-action":"terminate"`)),
			notice(event.SpotInterruption, "terminate", said.Add(2*time.Minute))},
		{"spot, with an ordinary ARN", raw("aws.ec2", spotType, arn, ofOne(`,"instance-action":"stop"`)),
			notice(event.SpotInterruption, "stop", said.Add(2*time.Minute))},
		{"another partition", raw("aws.ec2", spotType, strings.Replace(arn, "aws:", "aws-cn:", 1), ofOne("")),
			notice(event.SpotInterruption, "", said.Add(2*time.Minute))},
		{"rebalance", raw("aws.ec2", rebalanceType, arn, ofOne("")), notice(event.RebalanceRecommendation, "", time.Time{})},
		{"state", raw("aws.ec2", stateType, arn, ofOne(`,"state":"stopping"`)), stopping},
		{"health", raw("aws.health", healthType, one, health), both},
		{"health with an ARN", raw("aws.health", healthType, arn, health), both},
		{"reservation", raw("aws.ec2", reservationType, arn, ofOne(`,"instance-action":"terminate","instance-termination-time":"2026-11-20T12:01:00Z"`)),
			notice(event.ReservationInterruption, "terminate", said.Add(time.Minute))},
		{"a later end does not move the deadline", raw("aws.ec2", reservationType, arn, ofOne(`,"instance-termination-time":"2026-11-20T18:00:00Z"`)),
			notice(event.ReservationInterruption, "", said.Add(2*time.Minute))},
		{"an odd end is passed over", raw("aws.ec2", reservationType, arn, ofOne(`,"instance-termination-time":"soon"`)),
			notice(event.ReservationInterruption, "", said.Add(2*time.Minute))},
		{"one resource without a list", strings.Replace(raw("aws.ec2", rebalanceType, arn, ofOne("")), `["`+arn+`"]`, `"`+arn+`"`, 1),
			notice(event.RebalanceRecommendation, "", time.Time{})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse([]byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("notice (-want +got):\n%s", diff)
			}
		})
	}
}

// Reading must be total: a notice that can be acted on, or one of two verdicts.
func FuzzParse(f *testing.F) {
	f.Add([]byte(raw("aws.ec2", spotType, arn, ofOne(""))))
	f.Add([]byte(raw("aws.ec2", stateType, arn, ofOne(`,"state":"stopped"`))))
	f.Add([]byte(raw("aws.health", healthType, one, `{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"`+one+`"}]}`)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := parse(data)
		if err != nil {
			if !fault.Is(err, fault.Poison, fault.Foreign) {
				t.Fatalf("kind %s: %v", fault.KindOf(err), err)
			}
			return
		}
		if n.Noticed.After(taken) || n.Deadline.After(taken.Add(Warning)) || !n.Deadline.IsZero() && n.Deadline.Before(n.Noticed) {
			t.Fatalf("noticed %s, with the deadline %s", n.Noticed, n.Deadline)
		}
		if n.Kind == "" || len(n.Instances) == 0 || n.Noticed.IsZero() {
			t.Fatalf("a notice of nothing: %+v", n)
		}
		for _, id := range n.Instances {
			if !isInstance([]byte(id)) {
				t.Fatalf("instance %q", id)
			}
		}
	})
}

func TestOfStatus(t *testing.T) {
	due, now := said, said.Add(3*time.Second)
	impaired := func(ago time.Duration) cloud.Status { return cloud.Status{InstanceID: one, Impaired: now.Add(-ago)} }
	planned := func(codes ...string) cloud.Status {
		s := cloud.Status{InstanceID: one}
		for _, code := range codes {
			s.Events = append(s.Events, cloud.ScheduledEvent{Code: code, NotBefore: now.Add(time.Hour)})
		}
		return s
	}
	change := func(code string) Notice {
		return Notice{Kind: event.ScheduledChange, Instances: []string{one}, Noticed: due, Detail: code}
	}
	for _, tt := range []struct {
		name   string
		status cloud.Status
		want   []Notice
	}{
		{"well", cloud.Status{InstanceID: one}, nil},
		{"impaired for a moment", impaired(ImpairedAfter - 1), nil},
		{"impaired for long", impaired(ImpairedAfter), []Notice{{
			Kind: event.StatusImpaired, Instances: []string{one}, Noticed: now.Add(-ImpairedAfter), Deadline: now, Detail: "impaired",
		}}},
		{"impaired, and nobody knows since when", cloud.Status{InstanceID: one, Undated: true}, []Notice{{
			Kind: event.StatusImpaired, Instances: []string{one}, Noticed: due, Deadline: due, Detail: "impaired",
		}}},
		{"maintenance", planned("system-maintenance", "system-maintenance", "instance-stop"), []Notice{change("system-maintenance"), change("instance-stop")}},
		{"an event of no interest", planned("volume-retirement"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, OfStatus(tt.status, due, now)); diff != "" {
				t.Fatalf("notices (-want +got):\n%s", diff)
			}
		})
	}
}
