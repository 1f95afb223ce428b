package deadletter_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var (
	now    = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ours   = event.Cluster{Name: "prod", UID: "uid"}
	reason = "decoding an envelope: byte 1 of 2"
)

// gone is an instance.gone of a cluster, said some time ago; it lives for an hour.
func gone(t *testing.T, cluster event.Cluster, ago time.Duration) []byte {
	t.Helper()
	e, err := event.Maker{Service: "interruption", Cluster: cluster}.New(now.Add(-ago), event.InstanceGone{InstanceID: "i-0123456789abcdef0", Shown: now.Add(-ago)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// notice is AWS's own event, as interruption gets it.
func notice(ago time.Duration) string {
	at := now.Add(-ago).Format(time.RFC3339)
	return `{"version":"0","id":"e-1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"123456789012","time":"` + at +
		`","region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1a:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`
}

func parked(more map[string]string) map[string]string {
	a := map[string]string{
		host.ReasonAttribute: reason, host.KindAttribute: "poison", host.ServiceAttribute: "lifecycle", host.MovedAtAttribute: "2026-11-22T11:00:00Z",
	}
	maps.Copy(a, more)
	return a
}

// TestRead predicts each future that a dead letter has.
func TestRead(t *testing.T) {
	fresh := string(gone(t, ours, time.Minute))
	event1 := func(detail string) string {
		return `{"version":"0","id":"e-1","detail-type":"instance.gone.v1","source":"joist/interruption","detail":` + detail + `}`
	}
	rule := map[string]string{"RULE_ARN": "arn:aws:events:eu-west-1:1:rule/prod-joist/prod-joist-inbox", "ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "not authorized"}
	for _, test := range []struct {
		name, service, body string
		attributes          map[string]string
		origin              deadletter.Origin
		verdict             deadletter.Disposition
		why, again          string
		movable             bool
	}{
		{"mended since", "lifecycle", fresh, parked(nil), deadletter.Parked, deadletter.Handle, "", fresh, true},
		{"of a crash", "lifecycle", fresh, nil, deadletter.Redriven, deadletter.Handle, "", fresh, true},
		{"expired", "lifecycle", string(gone(t, ours, 2*time.Hour)), parked(nil), deadletter.Parked, deadletter.Noop, "expired at", "", true},
		{"of another cluster", "lifecycle", string(gone(t, event.Cluster{Name: "test"}, 0)), parked(nil), deadletter.Parked, deadletter.Noop, `of cluster "test"`, "", true},
		{"of another service", "planner", fresh, parked(nil), deadletter.Parked, deadletter.Poison, "does not handle the type", "", true},
		{"not JSON", "lifecycle", `{`, parked(nil), deadletter.Parked, deadletter.Poison, "", `{`, true},
		{"a body that nobody could obey", "lifecycle", strings.Replace(fresh, "i-0123456789abcdef0", "", 2), parked(nil), deadletter.Parked, deadletter.Poison, "", "", true},
		{"an unknown version", "lifecycle", strings.Replace(fresh, "gone.v1", "gone.v9", 1), parked(nil), deadletter.Parked, deadletter.Poison, "major version 9", "", true},
		{"no text", "lifecycle", base64.StdEncoding.EncodeToString([]byte{0}), parked(map[string]string{host.EncodingAttribute: "base64"}), deadletter.Parked, deadletter.Cut, "no", "", false},
		{"encoded text", "lifecycle", base64.StdEncoding.EncodeToString([]byte(fresh)), parked(map[string]string{host.EncodingAttribute: "base64"}), deadletter.Parked, deadletter.Handle, "", fresh, false},
		{"cut off", "lifecycle", fresh[:40], parked(map[string]string{host.BytesAttribute: "2000000"}), deadletter.Parked, deadletter.Cut, "the first 40 bytes of 2000000", "", false},
		{"undelivered by the bus", "lifecycle", event1(fresh), rule, deadletter.Undelivered, deadletter.Handle, "", fresh, false},
		{"undelivered by the bus, and expired", "lifecycle", event1(string(gone(t, ours, 2*time.Hour))), rule, deadletter.Undelivered, deadletter.Noop, "expired", "", false},
		{"an entry of another type than its detail", "lifecycle", strings.Replace(event1(fresh), "instance.gone.v1", "node.noticed.v1", 1), rule, deadletter.Undelivered, deadletter.Forged, `"node.noticed.v1" from "joist/interruption"`, "", false},
		{"an entry from another service than its detail", "lifecycle", strings.Replace(event1(fresh), "joist/interruption", "joist/planner", 1), rule, deadletter.Undelivered, deadletter.Forged, `from "joist/planner"`, "", false},
		{"of a service that does not send the type", "lifecycle", strings.Replace(fresh, "joist/interruption", "joist/planner", 1), parked(nil), deadletter.Parked, deadletter.Forged, `"joist/planner" may not send instance.gone.v1`, "", true},
		{"for the audit log, of another type than its detail", "audit", strings.Replace(event1(fresh), "instance.gone.v1", "node.noticed.v1", 1), rule, deadletter.Undelivered, deadletter.Forged, "node.noticed.v1", "", true},
		{"undelivered by AWS's bus", "interruption", notice(time.Second), rule, deadletter.Undelivered, deadletter.Handle, "cluster's tags", notice(time.Second), true},
		{"a notice of yesterday", "interruption", notice(24 * time.Hour), rule, deadletter.Undelivered, deadletter.Noop, "old", notice(24 * time.Hour), true},
		{"no notice", "interruption", `[]`, parked(nil), deadletter.Parked, deadletter.Poison, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := queue.Message{ID: "m-1", Body: []byte(test.body), Receives: 101, Sent: now.Add(-time.Hour), Attributes: test.attributes}
			l := deadletter.Reader{Service: test.service, Cluster: event.Cluster{Name: "prod"}}.Read(m, now)
			if l.Origin != test.origin || l.Predicted.Verdict != test.verdict || !strings.Contains(l.Predicted.Why, test.why) || l.Movable() != test.movable {
				t.Errorf("%s, %s because %q, movable %t", l.Origin, l.Predicted.Verdict, l.Predicted.Why, l.Movable())
			}
			if test.again != "" && string(l.Outgoing().Body) != test.again {
				t.Errorf("a replay would send %s", l.Outgoing().Body)
			}
			if len(l.Outgoing().Attributes) > 0 {
				t.Errorf("a replay would send the letter's own attributes: %v", l.Outgoing().Attributes)
			}
		})
	}
}

// TestLetterSaysWhatIsKnown: who reads the list need not open the body.
func TestLetterSaysWhatIsKnown(t *testing.T) {
	m := queue.Message{ID: "m-1", Body: gone(t, ours, time.Minute), Receives: 2, Sent: now, Attributes: parked(nil)}
	l := deadletter.Reader{Service: "lifecycle", Cluster: ours}.Read(m, now)
	got, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"poison"`, reason, `"type":"instance.gone.v1"`, `"from":"joist/interruption"`, `"expires":"2026-11-22T12:59:00Z"`, `"subject":"`, `"receives":2`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestEveryTypeIsChecked: a type without a check would be predicted without a look at
// its body.
func TestEveryTypeIsChecked(t *testing.T) {
	for i := range event.Specs {
		if spec := &event.Specs[i]; !deadletter.Checked(spec.Type) {
			t.Errorf("the body of %s is not checked", spec.Type)
		}
	}
}
