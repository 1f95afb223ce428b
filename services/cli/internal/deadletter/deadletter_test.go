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
	now        = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ownCluster = event.Cluster{Name: "prod", UID: "uid"}
	reason     = "decoding an envelope: byte 1 of 2"
)

// goneBody returns an instance.gone event of a cluster, sent some time ago. It expires after
// an hour.
func goneBody(t *testing.T, cluster event.Cluster, ago time.Duration) []byte {
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

// noticeBody returns a spot interruption warning of AWS, as interruption receives it.
func noticeBody(ago time.Duration) string {
	at := now.Add(-ago).Format(time.RFC3339)
	return `{"version":"0","id":"e-1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"123456789012","time":"` + at +
		`","region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1a:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`
}

func parkedAttributes(more map[string]string) map[string]string {
	a := map[string]string{
		host.ReasonAttribute: reason, host.KindAttribute: "poison", host.ServiceAttribute: "lifecycle", host.MovedAtAttribute: "2026-11-22T11:00:00Z",
	}
	maps.Copy(a, more)
	return a
}

// TestReadPredicts covers each disposition.
func TestReadPredicts(t *testing.T) {
	fresh := string(goneBody(t, ownCluster, time.Minute))
	event1 := func(detail string) string {
		return `{"version":"0","id":"e-1","detail-type":"instance.gone.v1","source":"joist/interruption","detail":` + detail + `}`
	}
	rule := map[string]string{"RULE_ARN": "arn:aws:events:eu-west-1:1:rule/prod-joist/prod-joist-inbox", "ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "not authorized"}
	for _, test := range []struct {
		name, service, body string
		attributes          map[string]string
		origin              deadletter.Origin
		disposition         deadletter.Disposition
		why, again          string
		movable             bool
	}{
		{"its error is fixed", "lifecycle", fresh, parkedAttributes(nil), deadletter.MovedByService, deadletter.Handle, "", fresh, true},
		{"redriven by SQS", "lifecycle", fresh, nil, deadletter.Redriven, deadletter.Handle, "", fresh, true},
		{"expired", "lifecycle", string(goneBody(t, ownCluster, 2*time.Hour)), parkedAttributes(nil), deadletter.MovedByService, deadletter.Noop, "expired at", "", true},
		{"of another cluster", "lifecycle", string(goneBody(t, event.Cluster{Name: "test"}, 0)), parkedAttributes(nil), deadletter.MovedByService, deadletter.Noop, `for cluster "test"`, "", true},
		{"of another service", "planner", fresh, parkedAttributes(nil), deadletter.MovedByService, deadletter.Poison, "does not handle the type", "", true},
		{"not JSON", "lifecycle", `{`, parkedAttributes(nil), deadletter.MovedByService, deadletter.Poison, "", `{`, true},
		{"an invalid body", "lifecycle", strings.Replace(fresh, "i-0123456789abcdef0", "", 2), parkedAttributes(nil), deadletter.MovedByService, deadletter.Poison, "", "", true},
		{"an unknown version", "lifecycle", strings.Replace(fresh, "gone.v1", "gone.v9", 1), parkedAttributes(nil), deadletter.MovedByService, deadletter.Poison, "major version 9", "", true},
		{"not text", "lifecycle", base64.StdEncoding.EncodeToString([]byte{0}), parkedAttributes(map[string]string{host.EncodingAttribute: "base64"}), deadletter.MovedByService, deadletter.Truncated, "no", "", false},
		{"encoded text", "lifecycle", base64.StdEncoding.EncodeToString([]byte(fresh)), parkedAttributes(map[string]string{host.EncodingAttribute: "base64"}), deadletter.MovedByService, deadletter.Handle, "", fresh, false},
		{"cut off", "lifecycle", fresh[:40], parkedAttributes(map[string]string{host.BytesAttribute: "2000000"}), deadletter.MovedByService, deadletter.Truncated, "the first 40 bytes of 2000000", "", false},
		{"undelivered by the bus", "lifecycle", event1(fresh), rule, deadletter.Undelivered, deadletter.Handle, "", fresh, false},
		{"undelivered by the bus, and expired", "lifecycle", event1(string(goneBody(t, ownCluster, 2*time.Hour))), rule, deadletter.Undelivered, deadletter.Noop, "expired", "", false},
		{"an entry of another type than its detail", "lifecycle", strings.Replace(event1(fresh), "instance.gone.v1", "node.noticed.v1", 1), rule, deadletter.Undelivered, deadletter.Forged, `"node.noticed.v1" from "joist/interruption"`, "", false},
		{"an entry from another service than its detail", "lifecycle", strings.Replace(event1(fresh), "joist/interruption", "joist/planner", 1), rule, deadletter.Undelivered, deadletter.Forged, `from "joist/planner"`, "", false},
		{"of a service that does not send the type", "lifecycle", strings.Replace(fresh, "joist/interruption", "joist/planner", 1), parkedAttributes(nil), deadletter.MovedByService, deadletter.Forged, `"joist/planner" may not send instance.gone.v1`, "", true},
		{"for the audit log, of another type than its detail", "audit", strings.Replace(event1(fresh), "instance.gone.v1", "node.noticed.v1", 1), rule, deadletter.Undelivered, deadletter.Forged, "node.noticed.v1", "", true},
		{"undelivered by AWS's bus", "interruption", noticeBody(time.Second), rule, deadletter.Undelivered, deadletter.Handle, "cluster's tags", noticeBody(time.Second), true},
		{"an old notice", "interruption", noticeBody(24 * time.Hour), rule, deadletter.Undelivered, deadletter.Noop, "old", noticeBody(24 * time.Hour), true},
		{"not a notice", "interruption", `[]`, parkedAttributes(nil), deadletter.MovedByService, deadletter.Poison, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := queue.Message{ID: "m-1", Body: []byte(test.body), Receives: 101, Sent: now.Add(-time.Hour), Attributes: test.attributes}
			l := deadletter.Reader{Service: test.service, Cluster: event.Cluster{Name: "prod"}}.Read(m, now)
			if l.Origin != test.origin || l.Predicted.Disposition != test.disposition || !strings.Contains(l.Predicted.Reason, test.why) || l.IsMovable() != test.movable {
				t.Errorf("origin %s, disposition %s (%q), movable %t", l.Origin, l.Predicted.Disposition, l.Predicted.Reason, l.IsMovable())
			}
			if test.again != "" && string(l.Outgoing().Body) != test.again {
				t.Errorf("a replay would send %s", l.Outgoing().Body)
			}
			if len(l.Outgoing().Attributes) > 0 {
				t.Errorf("a replay would send the attributes of the DLQ message: %v", l.Outgoing().Attributes)
			}
		})
	}
}

// TestMessageJSON: the list has the fields of the envelope, so that the body need not be read.
func TestMessageJSON(t *testing.T) {
	m := queue.Message{ID: "m-1", Body: goneBody(t, ownCluster, time.Minute), Receives: 2, Sent: now, Attributes: parkedAttributes(nil)}
	l := deadletter.Reader{Service: "lifecycle", Cluster: ownCluster}.Read(m, now)
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

// TestEveryTypeIsChecked: without a check, a prediction would ignore the body.
func TestEveryTypeIsChecked(t *testing.T) {
	for i := range event.Specs {
		if spec := &event.Specs[i]; !deadletter.HasCheck(spec.Type) {
			t.Errorf("the body of %s is not checked", spec.Type)
		}
	}
}
