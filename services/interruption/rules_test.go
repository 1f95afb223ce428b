package interruption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption/internal/notice"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
)

// TestEventRules requires that exactly one EventBridge rule matches each event that becomes a
// notice, and that no rule matches other events.
func TestEventRules(t *testing.T) {
	ec2 := func(detailType, rest string) string {
		return fmt.Sprintf(`{"version":"0","id":"e","detail-type":%q,"source":"aws.ec2","account":"123456789012","time":"2026-11-20T12:00:00Z",`+
			`"region":"us-west-2","resources":[],"detail":{"instance-id":%q%s}}`, detailType, ownedID, rest)
	}
	health := strings.Replace(ec2("AWS Health Event", `,"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[{"entityValue":"`+ownedID+`"}]`), "aws.ec2", "aws.health", 1)
	for _, tt := range []struct {
		event string
		rule  string
	}{
		{ec2(spotType, `,"instance-action":"terminate"`), "SpotInterruptionRule"},
		{ec2(rebalanceType, ""), "RebalanceRule"},
		{ec2(stateType, `,"state":"stopping"`), "InstanceStateChangeRule"},
		{ec2(stateType, `,"state":"stopped"`), "InstanceStateChangeRule"},
		{ec2(stateType, `,"state":"shutting-down"`), "InstanceStateChangeRule"},
		{ec2(stateType, `,"state":"terminated"`), "InstanceStateChangeRule"},
		{ec2(stateType, `,"state":"pending"`), ""},
		{ec2(stateType, `,"state":"running"`), ""},
		{health, "ScheduledChangeRule"},
		{ec2("EC2 Capacity Reservation Instance Interruption Warning", ""), "CapacityReservationInterruptionRule"},
		{ec2("EC2 Interruptible Capacity Reservation Instance Interruption Warning", ""), "CapacityReservationInterruptionRule"},
		{ec2("EBS Volume Notification", ""), ""},
		{`{"source":"joist/launcher","detail-type":"launch.settled.v1","detail":{}}`, ""},
	} {
		var matched []string
		for _, rule := range event.NoticeRules {
			pattern, err := eventpattern.Compile([]byte(rule.Pattern))
			if err != nil {
				t.Fatalf("%s: %v", rule.Name, err)
			}
			ok, err := pattern.Match([]byte(tt.event))
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				matched = append(matched, rule.Name)
			}
		}
		if got := strings.Join(matched, " "); got != tt.rule {
			t.Errorf("%s\nis matched by %q, want %q", tt.event, got, tt.rule)
		}
		var d notice.Document
		err := d.ReadHeader([]byte(tt.event))
		if err == nil {
			err = d.ReadNotice(start.Add(time.Hour), &notice.Notice{})
		}
		if (err == nil) != (tt.rule != "") {
			t.Errorf("%s\nis decoded with the error %v", tt.event, err)
		}
		if err != nil && !fault.Is(err, fault.Foreign) {
			t.Error(err)
		}
	}
}
