package karpenter

// The reasons of Kubernetes Events as Karpenter and its AWS provider say
// them: people's alarms and dashboards look for these words.
const (
	// About a NodeClaim that comes up, or runs.
	ReasonInsufficientCapacity   = "InsufficientCapacityError"
	ReasonNodeClassNotReady      = "NodeClassNotReady"
	ReasonUnregisteredTaint      = "UnregisteredTaintMissing"
	ReasonFailedConsistencyCheck = "FailedConsistencyCheck"

	// About a disruption before its drain.
	ReasonDisruptionBlocked          = "DisruptionBlocked"
	ReasonUnconsolidatable           = "Unconsolidatable"
	ReasonDisruptionLaunching        = "DisruptionLaunching"
	ReasonDisruptionWaitingReadiness = "DisruptionWaitingReadiness"
	ReasonDisruptionTerminating      = "DisruptionTerminating"

	// About a drain.
	ReasonEvicted                  = "Evicted"
	ReasonDisrupted                = "Disrupted"
	ReasonFailedDraining           = "FailedDraining"
	ReasonAwaitingVolumeDetachment = "AwaitingVolumeDetachment"
	ReasonGracePeriodExpiring      = "TerminationGracePeriodExpiring"

	// About the annotation karpenter.sh/do-not-disrupt of a pod.
	ReasonInvalidDoNotDisrupt = "InvalidDoNotDisruptAnnotation"
	ReasonDoNotDisruptUntil   = "DoNotDisruptUntil"
	ReasonDoNotDisruptElapsed = "DoNotDisruptGracePeriodElapsed"

	// About what plans make of pods and NodePools.
	ReasonFailedScheduling          = "FailedScheduling"
	ReasonNominated                 = "Nominated"
	ReasonNoCompatibleInstanceTypes = "NoCompatibleInstanceTypes"

	// About zones that a NodePool is kept away from.
	ReasonZonalShiftActive  = "ZonalShiftActive"
	ReasonZonalShiftCleared = "ZonalShiftCleared"

	// About a node that is sick.
	ReasonNodeRepairBlocked = "NodeRepairBlocked"
)
