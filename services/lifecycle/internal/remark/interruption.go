package remark

// About what AWS takes away, on NodeClaims and nodes, in Karpenter's words.
var (
	SpotInterrupted           = Remark{Type: warning, Reason: "SpotInterrupted"}
	RebalanceRecommended      = Remark{Type: normal, Reason: "SpotRebalanceRecommendation"}
	ReservationInterrupted    = Remark{Type: warning, Reason: "CapacityReservationInstanceInterrupted"}
	InstanceStopping          = Remark{Type: warning, Reason: "InstanceStopping"}
	InstanceTerminating       = Remark{Type: warning, Reason: "InstanceTerminating"}
	InstanceUnhealthy         = Remark{Type: warning, Reason: "InstanceUnhealthy"}
	TerminatingOnInterruption = Remark{Type: warning, Reason: "TerminatingOnInterruption"}
)
