package events

// About what AWS takes away, on NodeClaims and nodes, in Karpenter's words.
var (
	SpotInterrupted           = Reason{Type: warning, Reason: "SpotInterrupted"}
	RebalanceRecommended      = Reason{Type: normal, Reason: "SpotRebalanceRecommendation"}
	ReservationInterrupted    = Reason{Type: warning, Reason: "CapacityReservationInstanceInterrupted"}
	InstanceStopping          = Reason{Type: warning, Reason: "InstanceStopping"}
	InstanceTerminating       = Reason{Type: warning, Reason: "InstanceTerminating"}
	InstanceUnhealthy         = Reason{Type: warning, Reason: "InstanceUnhealthy"}
	TerminatingOnInterruption = Reason{Type: warning, Reason: "TerminatingOnInterruption"}
)
