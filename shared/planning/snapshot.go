package planning

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// The kinds of the documents, which are their folders.
const (
	BatchKind    = event.BatchKind
	SnapshotKind = event.SnapshotKind
	PlanKind     = event.PlanKind
)

// Snapshot is everything that planning and disruption depend on, including the time. Equal snapshots
// give equal results.
type Snapshot struct {
	TakenAt time.Time `json:"taken"`
	Cluster string    `json:"cluster"`
	// UID is the UID of the kube-system namespace.
	UID string `json:"uid"`
	// Catalogue refers to the document of EC2's instance types and offerings.
	Catalogue   event.Ref                `json:"catalogue"`
	Settings    Settings                 `json:"settings"`
	NodePools   []karpenter.NodePool     `json:"nodePools"`
	NodeClasses []karpenter.EC2NodeClass `json:"nodeClasses"`
	Nodes       []Node                   `json:"nodes"`
	// NodeParts is set in a stored document of a large cluster; blob.Get joins the nodes.
	NodeParts  NodeParts `json:"nodeParts,omitzero"`
	DaemonSets []PodSpec `json:"daemonSets,omitempty"`
	// PodsUseNodeSubnets is true if pods take addresses of their node's subnet, because the Amazon VPC
	// CNI runs without custom networking. Otherwise only nodes take them.
	PodsUseNodeSubnets bool `json:"podsUseNodeSubnets,omitempty"`
	// Namespaces are the labels of the pods' namespaces, but only labels that a namespaceSelector uses.
	// A namespace that is missing has no such labels.
	Namespaces map[string]map[string]string `json:"namespaces,omitempty"`
	// NodeOverlays are applied if their feature gate is on.
	NodeOverlays []karpenter.NodeOverlay `json:"nodeOverlays,omitempty"`
	// Buffers are the CapacityBuffers, if their feature gate is on.
	Buffers []Buffer `json:"buffers,omitempty"`
	// Unavailable lists offerings that EC2 rejected or interrupted.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// Repair defines which nodes are unhealthy, in a snapshot for disruption; nil if node repair is off.
	Repair *repair.PolicySet `json:"repair,omitempty"`
	// PendingPods are the provisionable pods in a snapshot for disruption: they use capacity that a
	// removal must not count on. A batch has them as Pending.
	PendingPods []PodClass `json:"waiting,omitempty"`
	// Devices is the state of Dynamic Resource Allocation, if PlanDRARequests is on.
	Devices DeviceState `json:"devices,omitzero"`
}

// Batch is the input of the planner: a snapshot and all provisionable pods, nominated or not.
type Batch struct {
	// Outbox and Seq identify the batch; the plan repeats them, so that plans of older batches can be
	// rejected.
	Outbox   string     `json:"outbox"`
	Seq      uint64     `json:"seq"`
	Snapshot Snapshot   `json:"snapshot"`
	Pending  []PodClass `json:"pending"`
	// Ignored are the pending pods that Joist does not plan, for explain.
	Ignored []IgnoredPods `json:"ignored,omitempty"`
	// Unplanned are user-created NodeClaims that are not launched yet. The plan launches them as they
	// are.
	Unplanned []karpenter.NodeClaim `json:"unplanned,omitempty"`
}

// IgnoredPods are pods of one namespace that are ignored for the same reason.
type IgnoredPods struct {
	Namespace string   `json:"namespace"`
	Reason    string   `json:"reason"`
	Pods      []PodRef `json:"pods"`
}

// Settings are the settings that affect planning.
type Settings struct {
	// PreferencePolicy is Respect or Ignore.
	PreferencePolicy string `json:"preferencePolicy,omitempty"`
	// MinValuesPolicy is Strict or BestEffort.
	MinValuesPolicy string `json:"minValuesPolicy,omitempty"`
	// VMMemoryOverheadPercent is a fraction, by default 0.075.
	VMMemoryOverheadPercent *float64 `json:"vmMemoryOverheadPercent,omitempty"`
	// ReservedENIs is the number of network interfaces that pods must not use.
	ReservedENIs int `json:"reservedEnis,omitempty"`
	// PlanDRARequests plans pods with dynamic resource claims by the devices of nodes and instance
	// types. Otherwise such pods are rejected, with an Event, as in Karpenter with its default
	// IGNORE_DRA_REQUESTS.
	PlanDRARequests bool  `json:"planDraRequests,omitempty"`
	Gates           Gates `json:"gates,omitzero"`
	// MaxNodeShare is the maximum share of a plan on one new node, by default a third.
	// ResiliencePremium is how much more a plan may cost for that, as a fraction of the price, by
	// default 0.03.
	MaxNodeShare      float64  `json:"maxNodeShare,omitempty"`
	ResiliencePremium *float64 `json:"resiliencePremium,omitempty"`
	// PlanByPriority gives limited capacity to pods of higher priority first.
	PlanByPriority bool `json:"planByPriority,omitempty"`
	// PriceLimit is the maximum price of all nodes with NodeClaims together, in US dollars an hour;
	// nil for no limit.
	PriceLimit *float64 `json:"priceLimit,omitempty"`
}

// Gates are the enabled feature gates. In a document older than a gate the gate is off, as it was when
// the document was planned.
type Gates struct {
	// ReservedCapacity launches into capacity reservations.
	ReservedCapacity bool `json:"reservedCapacity,omitempty"`
	// NodeOverlay applies NodeOverlays.
	NodeOverlay bool `json:"nodeOverlay,omitempty"`
	// CapacityBuffer reserves capacity for CapacityBuffers.
	CapacityBuffer bool `json:"capacityBuffer,omitempty"`
	// StaticCapacity launches the nodes of static NodePools.
	StaticCapacity bool `json:"staticCapacity,omitempty"`
	// SpotToSpotConsolidation replaces spot nodes with cheaper spot nodes.
	SpotToSpotConsolidation bool `json:"spotToSpotConsolidation,omitempty"`
	// TerminateFirstDrift removes a drifted node before its replacement is launched if the replacement
	// needs the node's place in a reservation or in limits.nodes.
	TerminateFirstDrift bool `json:"terminateFirstDrift,omitempty"`
	// DRANVIDIAGPU plans with the devices of the driver gpu.nvidia.com that new nodes will publish,
	// and DRAEFA with those of dra.net. Both need PlanDRARequests.
	DRANVIDIAGPU bool `json:"draNvidiaGpu,omitempty"`
	DRAEFA       bool `json:"draEfa,omitempty"`
	// NodeClassCEL allows expressions in spec.kubelet of an EC2NodeClass.
	NodeClassCEL bool `json:"nodeClassCEL,omitempty"`
}

// Unavailable is an offering that is not used until a time. Empty fields of the offering match all
// values.
type Unavailable struct {
	event.Offering
	// Subnet is set if the entry is for one subnet without free addresses. The offering has its zone,
	// which is unavailable to a node class once all its subnets there are.
	Subnet string `json:"subnet,omitempty"`
	// PlacementGroup limits the entry to node classes that select this group, by id or name.
	PlacementGroup string `json:"placementGroup,omitempty"`
	// Reservation is set if the entry is only for one capacity reservation, whose owner reclaims
	// instances.
	Reservation string `json:"reservation,omitempty"`
	// NodePool is set if the entry pauses all launches of one NodePool: EC2 refused Refused launches in a
	// row for a reason other than capacity. SpecKey is the NodePool's LaunchSpecKey at that time; with
	// another one the pause is over.
	NodePool string `json:"nodePool,omitempty"`
	SpecKey  string `json:"specKey,omitempty"`
	Refused  int    `json:"refused,omitempty"`

	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// LaunchLag is how long EC2 may take to count a new instance against a capacity reservation or the
// free addresses of a subnet.
const LaunchLag = time.Minute

// maxCountAge is how old a count of EC2 may be. The catalogue's counts are read every minute, but keep
// their time while they are unchanged: if one instance of a reservation is replaced by another, the
// count stays the same and includes the new one.
const maxCountAge = 5 * time.Minute

// ResolveCountTime returns the time up to which the catalogue's counts include new instances: counted,
// or later if the counts have been unchanged for long.
func (s *Snapshot) ResolveCountTime(counted time.Time) time.Time {
	if oldest := s.TakenAt.Add(-maxCountAge); counted.Before(oldest) {
		return oldest
	}
	return counted
}

// PodClass is a group of pods that scheduling treats as equal.
type PodClass struct {
	Spec PodSpec  `json:"spec"`
	Pods []PodRef `json:"pods"`
}

// PodRef identifies a pod.
type PodRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Created is part of the order of placement.
	Created time.Time `json:"created"`
	// Workload is the name of the pod's controller, or of the Deployment that owns a
	// ReplicaSet. It is empty for a pod without a controller.
	Workload string `json:"workload,omitempty"`
	// Node is set for a pod that still runs on a node that is being removed.
	Node string `json:"node,omitempty"`
	// Terminating is set for a pod that is being deleted: it uses capacity until it is gone, but does
	// not count in topology rules.
	Terminating bool `json:"terminating,omitempty"`
	// StartedAt is when the pod started; only set if DoNotDisrupt is a duration.
	StartedAt time.Time `json:"started,omitzero"`
	// BlockingPDB is the PodDisruptionBudget, as namespace/name, that would reject the pod's eviction
	// now.
	BlockingPDB string `json:"blocked,omitempty"`
	// Buffer is the name of the CapacityBuffer of a buffer pod. Such a pod does not exist in the
	// cluster, so it gets no Event.
	Buffer string `json:"buffer,omitempty"`
	// Claims are the names of the pod's ResourceClaims in its namespace, in the order of
	// PodSpec.Claims. The name of a claim with a problem may be empty.
	Claims []string `json:"claims,omitempty"`
}

// PodSpec is the part of a pod that planning reads. Nothing else of a pod leaves the cluster: no
// environment variables, images or other annotations.
type PodSpec struct {
	Namespace string `json:"namespace"`
	// OwnerKind is the kind of the pod's controller, with the group if that is a custom one: ReplicaSet, StatefulSet.apps.kruise.io.
	OwnerKind string `json:"ownerKind,omitempty"`
	// Labels are the labels that selectors of other pods use.
	Labels map[string]string `json:"labels,omitempty"`
	// Requests is what the pod takes from a node, including init containers, sidecars and overhead,
	// with pods=1.
	Requests     corev1.ResourceList               `json:"requests"`
	NodeSelector map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration               `json:"tolerations,omitempty"`
	Spread       []corev1.TopologySpreadConstraint `json:"spread,omitempty"`
	// DefaultSpread means that Spread has the cluster's default constraints, because the pod has none.
	DefaultSpread bool       `json:"defaultSpread,omitempty"`
	HostPorts     []HostPort `json:"hostPorts,omitempty"`
	Volumes       []Volume   `json:"volumes,omitempty"`
	Priority      int32      `json:"priority,omitempty"`
	GraceSeconds  int64      `json:"graceSeconds,omitempty"`
	// ResourceClaims counts dynamic resource claims. Claims describes the claims that need devices, if
	// PlanDRARequests is on.
	ResourceClaims int        `json:"resourceClaims,omitempty"`
	Claims         []PodClaim `json:"claims,omitempty"`
	DoNotDisrupt   string     `json:"doNotDisrupt,omitempty"`
	DeletionCost   string     `json:"deletionCost,omitempty"`
}

// HostPort is a port of the node that the pod binds.
type HostPort struct {
	IP       string          `json:"ip,omitempty"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// Volume is what a volume claim requires of the node: one of the alternatives, and one unit of the
// driver's attach limit.
type Volume struct {
	// Claim is empty if only this pod uses the claim. Its name would put equal pods into different
	// classes.
	Claim        string                    `json:"claim,omitempty"`
	Driver       string                    `json:"driver,omitempty"`
	Alternatives []corev1.NodeSelectorTerm `json:"alternatives,omitempty"`
	// Problem is why no node could ever mount the volume.
	Problem string `json:"problem,omitempty"`
}

// Node is a node, or a NodeClaim that will become one.
type Node struct {
	// Name is the node's name, or the NodeClaim's before the node has joined.
	Name string `json:"name"`
	// Claim is empty for a node that Joist does not manage.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUid,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Image is the id of the AMI that the instance booted.
	Image string `json:"image,omitempty"`
	// Labels and Taints are those of the node, or the planned ones of the NodeClaim.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// StartupTaints are those of the NodeClaim, until its node is initialized and while it is rebooted.
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements are those of a NodeClaim that is not launched yet.
	Requirements []karpenter.NodeSelectorRequirementWithMinValues `json:"requirements,omitempty"`
	// Allocatable is the total capacity for pods. For a NodeClaim that is not launched it is what it
	// was planned for, so that exactly those pods fit again.
	Allocatable corev1.ResourceList `json:"allocatable"`
	Capacity    corev1.ResourceList `json:"capacity,omitempty"`
	// Used is what bound pods take, including daemons; DaemonRequests is the part of daemons.
	Used           corev1.ResourceList `json:"used,omitempty"`
	DaemonRequests corev1.ResourceList `json:"daemons,omitempty"`
	HostPorts      []HostPort          `json:"hostPorts,omitempty"`
	Launched       bool                `json:"launched,omitempty"`
	Registered     bool                `json:"registered,omitempty"`
	Initialized    bool                `json:"initialized,omitempty"`
	// InitializedAt is the transition time of the condition.
	InitializedAt time.Time `json:"initializedAt,omitzero"`
	// MarkedForDeletion is true if the node is being deleted or AWS announced its interruption: no pod
	// may be planned onto it.
	MarkedForDeletion bool `json:"markedForDeletion,omitempty"`
	// Terminating is true if the pods are gone and EC2 was asked to terminate the instance. Budgets do
	// not count such a node.
	Terminating bool `json:"terminating,omitempty"`

	// Rebooting is true while the node is drained and rebooted in place: its capacity returns.
	Rebooting bool `json:"rebooting,omitempty"`

	Deadline time.Time `json:"deadline,omitzero"`
	Ready    bool      `json:"ready,omitempty"`
	// ReadySince is when the node reported that it became ready.
	ReadySince time.Time `json:"readySince,omitzero"`
	// PricePerHour is the price that the NodeClaim records, in US dollars; 0 if it records none.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	// ExpectedPods are the UIDs of the pods that the NodeClaim was planned for. They are placed on it
	// first.
	ExpectedPods []string `json:"expected,omitempty"`
	// NominatedUntil is until when pods are expected on the node.
	NominatedUntil time.Time `json:"nominated,omitzero"`
	LastPodEvent   time.Time `json:"lastPodEvent,omitzero"`
	// Created is when the node was created, or the NodeClaim before the node has joined.
	Created time.Time `json:"created,omitzero"`
	// LaunchedAt is when the instance of a NodeClaim whose node has not joined was recorded.
	LaunchedAt   time.Time `json:"launchedAt,omitzero"`
	DoNotDisrupt bool      `json:"doNotDisrupt,omitempty"`
	// ExpiresAt is when expireAfter removes the NodeClaim; zero for never. The remaining lifetime is
	// part of the disruption cost.
	ExpiresAt time.Time `json:"expires,omitzero"`
	// HasTerminationGracePeriod is true if the NodeClaim has a terminationGracePeriod, so that drift
	// need not wait for the protections of its pods.
	HasTerminationGracePeriod bool `json:"hasTerminationGracePeriod,omitempty"`
	// Drift is set if the NodeClaim has drifted from its NodePool or node class.
	Drift *Drift `json:"drift,omitempty"`
	// Unhealthy is set in a snapshot for disruption if the node has a condition for which Repair has a
	// policy, at any age.
	Unhealthy *Unhealthy `json:"unhealthy,omitempty"`
	Proposal  *Proposal  `json:"proposal,omitempty"`
	// Pods are the bound pods, without daemon, mirror and ended pods.
	Pods []PodClass `json:"pods,omitempty"`
	// DaemonPods are the daemon and mirror pods that a selector may count, or that exclude other pods.
	// Used includes them.
	DaemonPods []PodClass `json:"daemonPods,omitempty"`
}

// FindStartupTaints returns the startup taints of a NodeClaim's node. A document of an earlier version has only the startup taints
// of its NodePool.
func (s *Snapshot) FindStartupTaints(n *Node) []corev1.Taint {
	if len(n.StartupTaints) > 0 {
		return n.StartupTaints
	}
	for i := range s.NodePools {
		if s.NodePools[i].Name == n.NodePool {
			return s.NodePools[i].Spec.Template.Spec.StartupTaints
		}
	}
	return nil
}

// Drift is the NodeClaim's Drifted condition.
type Drift struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// Unhealthy has the facts that node repair reads.
type Unhealthy struct {
	Conditions []repair.UnhealthyCondition `json:"conditions"`
	// DoNotRepair is true if the node or its NodeClaim has the annotation karpenter.sh/do-not-repair.
	DoNotRepair bool `json:"doNotRepair,omitempty"`
	// LastReboot is when the node's last reboot ended. Tolerations begin no earlier.
	LastReboot time.Time `json:"lastReboot,omitzero"`
	// Reboots are when the last reboots of the node began.
	Reboots []time.Time `json:"reboots,omitempty"`
}

// HasJoined reports whether the node exists in Kubernetes, and is not only a NodeClaim.
func (n *Node) HasJoined() bool { return n.Registered || n.Name != n.Claim }

// Proposal is a disruption proposal that lifecycle wrote on a NodeClaim. NodeClaims with the same ID
// are disrupted together.
type Proposal struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	// Method is the disruption method that found it.
	Method     string    `json:"method,omitempty"`
	ProposedAt time.Time `json:"proposed"`
	// ConfirmedAt is when it was confirmed. After that it is only removed when it completes or is
	// rolled back.
	ConfirmedAt time.Time `json:"confirmed,omitzero"`
	// MovingPods is how many pods of the node needed another one when the proposal was confirmed. Versions before December
	// 2026 wrote nil.
	MovingPods *int `json:"movingPods,omitempty"`
	// Condition is the unhealthy condition of a node that is repaired. It is set when the proposal is
	// confirmed, as GracePeriod is.
	Condition corev1.NodeConditionType `json:"condition,omitempty"`
	// GracePeriod limits the drain of a node that is repaired; nil if only the NodeClaim limits it.
	GracePeriod *time.Duration `json:"gracePeriod,omitempty"`
	// Reboot is the unhealthy condition and its reason, if the node is rebooted instead of removed.
	Reboot string `json:"reboot,omitempty"`
	// Replacements are the NodeClaims that must be initialized before this one is removed.
	Replacements []string `json:"replacements,omitempty"`
	// TerminateFirst is why it is removed before its replacement is launched; empty for other
	// proposals.
	TerminateFirst TerminateFirstReason `json:"terminateFirst,omitempty"`
}

// CanBeInZone reports whether the node is in the zone, or may still be launched there.
func (n *Node) CanBeInZone(zone string) bool {
	if in := n.Labels[corev1.LabelTopologyZone]; in != "" || n.Launched {
		return in == zone
	}
	return !slices.ContainsFunc(n.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return karpenter.NormalizeLabel(r.Key) == corev1.LabelTopologyZone && !NewValues(r.Operator, r.Values...).Has(zone)
	})
}

// IsIncludedIn reports whether a count of EC2 at that time includes the node's instance. A NodeClaim may
// be launched long after it was created, for example when a later plan admits it.
func (n *Node) IsIncludedIn(counted time.Time) bool {
	since := n.Created
	if n.LaunchedAt.After(since) {
		since = n.LaunchedAt
	}
	return n.Launched && since.Before(counted.Add(-LaunchLag))
}

// CountNewAddresses returns how many addresses of its subnet a node of the snapshot may use that a
// count at that time does not include, because the node is too new.
func (s *Snapshot) CountNewAddresses(n *Node, counted time.Time) int64 {
	if n.Claim == "" || n.IsIncludedIn(counted) {
		return 0
	}
	pods := n.Used[corev1.ResourcePods]
	if !n.Launched {
		pods = n.Allocatable[corev1.ResourcePods] // its planned capacity
	}
	return s.CountAddresses(pods.Value())
}

// CountAddresses returns how many addresses of its subnet a node with that many pods uses.
func (s *Snapshot) CountAddresses(pods int64) int64 {
	if !s.PodsUseNodeSubnets {
		return 1
	}
	return 1 + pods
}

// CapacityInLimits returns the capacity that counts in the NodePool's limits. For a NodeClaim without
// a known type it is the ceiling, or else the planned capacity, which is the minimum.
func (n *Node) CapacityInLimits() corev1.ResourceList {
	if len(n.Capacity) > 0 {
		return n.Capacity
	}
	return n.Allocatable
}

// ReschedulablePods returns the pods that need another node if theirs is removed: pods that are not
// being deleted, and all pods of a StatefulSet, which replaces a pod only when it is gone (Karpenter:
// pkg/utils/pod/scheduling.go, IsReschedulable).
func (c *PodClass) ReschedulablePods() []PodRef {
	if c.Spec.OwnerKind == "StatefulSet" || CountNotTerminating(c.Pods) == len(c.Pods) {
		return c.Pods
	}
	return slices.DeleteFunc(slices.Clone(c.Pods), func(p PodRef) bool { return p.Terminating })
}

// CountNotTerminating counts the pods that are not being deleted.
func CountNotTerminating(pods []PodRef) int {
	n := 0
	for i := range pods {
		if !pods[i].Terminating {
			n++
		}
	}
	return n
}
