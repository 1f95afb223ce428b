package memcloud

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// raw is an event as EventBridge delivers it.
type raw struct {
	Version    string    `json:"version"`
	ID         string    `json:"id"`
	DetailType string    `json:"detail-type"`
	Source     string    `json:"source"`
	Account    string    `json:"account"`
	Time       time.Time `json:"time"`
	Region     string    `json:"region"`
	Resources  []string  `json:"resources"`
	Detail     any       `json:"detail"`
}

// emit sends an event unless the QuietEvents fault drops it. about is the input of that random decision.
func (c *Cloud) emit(e raw, about ...string) {
	e.Version, e.Account, e.Region = "0", c.options.Account, c.options.Region
	e.ID = c.uuid("event")
	e.Time = c.clock.UTC().Truncate(time.Second)
	if c.options.Events == nil || c.countFault("event-not-sent", c.share(append(about, "quiet")...) < c.faults.QuietEvents) {
		return
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic("memcloud: encoding an event as JSON: " + err.Error())
	}
	c.outbox = append(c.outbox, body)
}

func (c *Cloud) ofInstance(detailType, id string, detail map[string]any) raw {
	detail["instance-id"] = id
	return raw{
		DetailType: detailType, Source: "aws.ec2", Detail: detail,
		Resources: []string{"arn:aws:ec2:" + c.options.Region + ":" + c.options.Account + ":instance/" + id},
	}
}

func (c *Cloud) stateChange(i *instance, to cloud.State) raw {
	return c.ofInstance("EC2 Instance State-change Notification", i.ID, map[string]any{"state": string(to)})
}

func (c *Cloud) spotWarning(i *instance) raw {
	return c.ofInstance("EC2 Spot Instance Interruption Warning", i.ID, map[string]any{"instance-action": "terminate"})
}

func (c *Cloud) rebalance(i *instance) raw {
	return c.ofInstance("EC2 Instance Rebalance Recommendation", i.ID, map[string]any{})
}

func (c *Cloud) reservationWarning(i *instance) raw {
	return c.ofInstance("EC2 Capacity Reservation Instance Interruption Warning", i.ID,
		map[string]any{"instance-action": "terminate"})
}

// scheduledChange is the AWS Health event for scheduled maintenance.
func (c *Cloud) scheduledChange(id, code string, notBefore time.Time) raw {
	kind := "AWS_EC2_" + strings.ToUpper(strings.ReplaceAll(code, "-", "_")) + "_SCHEDULED"
	return raw{
		DetailType: "AWS Health Event", Source: "aws.health", Resources: []string{id},
		Detail: map[string]any{
			"eventArn":          "arn:aws:health:" + c.options.Region + "::event/EC2/" + kind + "/" + c.uuid("health"),
			"service":           "EC2",
			"eventTypeCode":     kind,
			"eventTypeCategory": "scheduledChange",
			"eventRegion":       c.options.Region,
			"affectedAccount":   c.options.Account,
			"startTime":         notBefore.UTC().Format(time.RFC1123),
			"affectedEntities":  []map[string]string{{"entityValue": id}},
		},
	}
}
