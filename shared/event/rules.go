package event

// Rule is one EventBridge rule on the account's default bus.
type Rule struct {
	Name string
	// Pattern is an EventBridge event pattern.
	Pattern string
}

// NoticeRules are the rules that send AWS's events to interruption. They match the whole account, because a pattern
// cannot select a cluster's instances. They omit events without effect: two of the six instance states are not
// interruptions and occur at every launch.
var NoticeRules = []Rule{
	{"ScheduledChangeRule", `{"source":["aws.health"],"detail-type":["AWS Health Event"]}`},
	{"SpotInterruptionRule", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`},
	{"RebalanceRule", `{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`},
	{"InstanceStateChangeRule", `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],` +
		`"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`},
	{"CapacityReservationInterruptionRule", `{"source":["aws.ec2"],"detail-type":["EC2 Capacity Reservation Instance Interruption Warning",` +
		`"EC2 Interruptible Capacity Reservation Instance Interruption Warning"]}`},
}
