package event

// Rule is one rule on the account's default bus in EventBridge.
type Rule struct {
	Name string
	// Pattern is EventBridge's own language of patterns.
	Pattern string
}

// NoticeRules are the rules that bring AWS's own events to interruption.
// They see the whole account, for a pattern cannot tell a cluster's instances; but
// what no service acts on stays away: of the six states of an instance two take
// nothing away, and come with every launch.
var NoticeRules = []Rule{
	{"ScheduledChangeRule", `{"source":["aws.health"],"detail-type":["AWS Health Event"]}`},
	{"SpotInterruptionRule", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`},
	{"RebalanceRule", `{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`},
	{"InstanceStateChangeRule", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],` +
		`"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`},
	{"CapacityReservationInterruptionRule", `{"source":["aws.ec2"],"detail-type":["EC2 Capacity Reservation Instance Interruption Warning",` +
		`"EC2 Interruptible Capacity Reservation Instance Interruption Warning"]}`},
}
