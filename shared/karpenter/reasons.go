package karpenter

// The reasons of Kubernetes Events are those of Karpenter and its AWS provider, because alarms and dashboards search
// for them.
const (
	// A NodeClaim that is starting or running.
	ReasonInsufficientCapacity   = "InsufficientCapacityError"
	ReasonNodeClassNotReady      = "NodeClassNotReady"
	ReasonUnregisteredTaint      = "UnregisteredTaintMissing"
	ReasonFailedConsistencyCheck = "FailedConsistencyCheck"

	// A disruption before its drain.
	ReasonDisruptionBlocked          = "DisruptionBlocked"
	ReasonUnconsolidatable           = "Unconsolidatable"
	ReasonDisruptionLaunching        = "DisruptionLaunching"
	ReasonDisruptionWaitingReadiness = "DisruptionWaitingReadiness"
	ReasonDisruptionTerminating      = "DisruptionTerminating"

	// A drain.
	ReasonEvicted                  = "Evicted"
	ReasonDisrupted                = "Disrupted"
	ReasonFailedDraining           = "FailedDraining"
	ReasonAwaitingVolumeDetachment = "AwaitingVolumeDetachment"
	ReasonGracePeriodExpiring      = "TerminationGracePeriodExpiring"

	// A pod's annotation karpenter.sh/do-not-disrupt.
	ReasonInvalidDoNotDisrupt = "InvalidDoNotDisruptAnnotation"
	ReasonDoNotDisruptUntil   = "DoNotDisruptUntil"
	ReasonDoNotDisruptElapsed = "DoNotDisruptGracePeriodElapsed"

	// Pods and NodePools in plans.
	ReasonFailedScheduling          = "FailedScheduling"
	ReasonNominated                 = "Nominated"
	ReasonNoCompatibleInstanceTypes = "NoCompatibleInstanceTypes"

	// Zones that a NodePool avoids.
	ReasonZonalShiftActive  = "ZonalShiftActive"
	ReasonZonalShiftCleared = "ZonalShiftCleared"

	// An unhealthy node.
	ReasonNodeRepairBlocked = "NodeRepairBlocked"
	ReasonRebootObserved    = "RebootObserved"
	ReasonRebootFailed      = "RebootFailed"
)
