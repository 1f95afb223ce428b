package planning

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The folders of the documents.
const (
	BatchKind    = event.BatchKind
	SnapshotKind = event.SnapshotKind
	PlanKind     = event.PlanKind
)

// Snapshot is everything that a decision about the cluster may depend on. Two
// equal snapshots give two equal decisions: there is no other input, and the
// time is part of it.
type Snapshot struct {
	TakenAt time.Time `json:"taken"`
	Cluster string    `json:"cluster"`
	// UID is that of the kube-system namespace.
	UID string `json:"uid"`
	// Catalogue refers to the document of what EC2 offers.
	Catalogue   event.Ref                `json:"catalogue"`
	Settings    Settings                 `json:"settings"`
	NodePools   []karpenter.NodePool     `json:"nodePools"`
	NodeClasses []karpenter.EC2NodeClass `json:"nodeClasses"`
	Nodes       []Node                   `json:"nodes"`
	DaemonSets  []PodSpec                `json:"daemonSets,omitempty"`
	// Namespaces are the labels of the namespaces of pods here, and of those only
	// what some namespaceSelector names. One that is missing has none.
	Namespaces map[string]map[string]string `json:"namespaces,omitempty"`
	// NodeOverlays are heeded where their gate is on.
	NodeOverlays []karpenter.NodeOverlay `json:"nodeOverlays,omitempty"`
	// Buffers are the CapacityBuffers, where their gate is on.
	Buffers []Buffer `json:"buffers,omitempty"`
	// Unavailable lists offerings that EC2 refused or takes away.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// PendingPods are the provisionable pods, in a snapshot that disruption decides from:
	// they take room that a removal must not count on. A batch has them as Pending.
	PendingPods []PodClass `json:"waiting,omitempty"`
}

// Batch is what the planner decides from: a snapshot, and every provisionable
// pod, nominated or not.
type Batch struct {
	// Outbox and Seq name the batch; the plan carries them back through the
	// fence.
	Outbox   string     `json:"outbox"`
	Seq      uint64     `json:"seq"`
	Snapshot Snapshot   `json:"snapshot"`
	Pending  []PodClass `json:"pending"`
	// Ignored are the pods that wait and are not for Joist to plan, so that it can
	// be explained.
	Ignored []IgnoredPods `json:"ignored,omitempty"`
	// Unplanned are NodeClaims that a person created and for which nothing is launched
	// yet. The plan launches them as they are.
	Unplanned []karpenter.NodeClaim `json:"unplanned,omitempty"`
}

// IgnoredPods is a group of pods of one namespace that are left alone for one reason.
type IgnoredPods struct {
	Namespace string   `json:"namespace"`
	Reason    string   `json:"reason"`
	Pods      []PodRef `json:"pods"`
}

// Settings are the knobs that change a decision (B.5).
type Settings struct {
	// PreferencePolicy is Respect or Ignore.
	PreferencePolicy string `json:"preferencePolicy,omitempty"`
	// MinValuesPolicy is Strict or BestEffort.
	MinValuesPolicy string `json:"minValuesPolicy,omitempty"`
	// VMMemoryOverheadPercent is a fraction, 0.075 by default.
	VMMemoryOverheadPercent float64 `json:"vmMemoryOverheadPercent,omitempty"`
	// ReservedENIs are kept from pods.
	ReservedENIs int `json:"reservedEnis,omitempty"`
	// PlanDRARequests plans pods with dynamic resource claims by their other
	// requirements. Otherwise they are ignored, with an Event, as by Karpenter with its
	// default IGNORE_DRA_REQUESTS: which devices a node will publish is unknown before the
	// node has joined.
	PlanDRARequests bool  `json:"planDraRequests,omitempty"`
	Gates           Gates `json:"gates,omitzero"`
	// MaxNodeShare is the largest part of a plan that one new node should carry, a
	// third by default; ResiliencePremium is how much dearer a plan may be for it,
	// as a part of the price, 0.05 by default.
	MaxNodeShare      float64  `json:"maxNodeShare,omitempty"`
	ResiliencePremium *float64 `json:"resiliencePremium,omitempty"`
	// PlanByPriority lets pods of higher priority have the limits first.
	PlanByPriority bool `json:"planByPriority,omitempty"`
	// PriceLimit is what all nodes with claims may cost together, in US dollars an hour;
	// nil is no limit.
	PriceLimit *float64 `json:"priceLimit,omitempty"`
}

// Gates are the features that are on. A document from before a gate was
// carried has it off, which is how it was decided then.
type Gates struct {
	// ReservedCapacity lets launches take from capacity reservations.
	ReservedCapacity bool `json:"reservedCapacity,omitempty"`
	// NodeOverlay heeds NodeOverlays.
	NodeOverlay bool `json:"nodeOverlay,omitempty"`
	// CapacityBuffer keeps room for CapacityBuffers.
	CapacityBuffer bool `json:"capacityBuffer,omitempty"`
	// StaticCapacity keeps the nodes of static pools.
	StaticCapacity bool `json:"staticCapacity,omitempty"`
	// SpotToSpotConsolidation lets cheaper spot nodes replace spot nodes.
	SpotToSpotConsolidation bool `json:"spotToSpotConsolidation,omitempty"`
}

// Unavailable is an offering that is left alone until a time. Empty
// fields of the offering mean all.
type Unavailable struct {
	event.Offering
	// Subnet is set when it is one subnet that has no addresses left; the offering is
	// its zone then, which is unavailable to a class once all of its subnets are.
	Subnet string `json:"subnet,omitempty"`
	// PlacementGroup confines it to classes that select this group, by id or name.
	PlacementGroup string `json:"placementGroup,omitempty"`
	// Reservation is set when it is one capacity reservation whose owner takes
	// instances back; nothing else of the offering is short then.
	Reservation string `json:"reservation,omitempty"`

	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// LaunchLag is how long EC2 takes at most to count a new instance in the launches that a
// capacity reservation has left and in the free addresses of a subnet.
const LaunchLag = time.Minute

// PodClass is a group of pods that scheduling cannot tell apart.
type PodClass struct {
	Spec PodSpec  `json:"spec"`
	Pods []PodRef `json:"pods"`
}

// PodRef names one pod.
type PodRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Created is part of the order in which pods are placed.
	Created time.Time `json:"created"`
	// Workload is the name of the pod's controller, or of the Deployment that owns a
	// ReplicaSet. It is empty for a pod without a controller.
	Workload string `json:"workload,omitempty"`
	// Node is set for a pod that still runs on a node that is going away.
	Node string `json:"node,omitempty"`
	// Terminating is set for a pod that is being deleted: it takes room until it is gone,
	// and counts in no topology.
	Terminating bool `json:"going,omitempty"`
	// StartedAt is when the pod began to run, where its DoNotDisrupt is a duration since
	// then.
	StartedAt time.Time `json:"started,omitzero"`
	// BlockingPDB names the PodDisruptionBudget, as namespace/name, that would refuse the
	// pod's eviction now.
	BlockingPDB string `json:"blocked,omitempty"`
	// Buffer names the CapacityBuffer that the pod stands for. Such a pod does not exist
	// in the cluster, so it gets no Event.
	Buffer string `json:"buffer,omitempty"`
}

// PodSpec is the part of a pod that planning reads, and all of a pod that ever
// leaves the cluster: no environment, no image, no other annotation.
type PodSpec struct {
	Namespace string `json:"namespace"`
	OwnerKind string `json:"ownerKind,omitempty"`
	// Labels are the labels that selectors of other pods refer to.
	Labels map[string]string `json:"labels,omitempty"`
	// Requests is what the pod takes from a node, init containers, sidecars and
	// overhead included, with pods=1.
	Requests     corev1.ResourceList               `json:"requests"`
	NodeSelector map[string]string                 `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration               `json:"tolerations,omitempty"`
	Spread       []corev1.TopologySpreadConstraint `json:"spread,omitempty"`
	HostPorts    []HostPort                        `json:"hostPorts,omitempty"`
	Volumes      []Volume                          `json:"volumes,omitempty"`
	Priority     int32                             `json:"priority,omitempty"`
	GraceSeconds int64                             `json:"graceSeconds,omitempty"`
	// ResourceClaims counts dynamic resource claims.
	ResourceClaims int    `json:"resourceClaims,omitempty"`
	DoNotDisrupt   string `json:"doNotDisrupt,omitempty"`
	DeletionCost   string `json:"deletionCost,omitempty"`
}

// HostPort is a port of the node that the pod binds.
type HostPort struct {
	IP       string          `json:"ip,omitempty"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// Volume is what a volume claim asks of the node: alternatives of which one
// must hold, and the driver whose attach limit it counts against.
type Volume struct {
	// Claim is empty when no other pod uses the claim: it is a volume of the pod's
	// own then, and its name would part pods that are alike.
	Claim        string                    `json:"claim,omitempty"`
	Driver       string                    `json:"driver,omitempty"`
	Alternatives []corev1.NodeSelectorTerm `json:"alternatives,omitempty"`
	// Problem says why no node could ever mount it.
	Problem string `json:"problem,omitempty"`
}

// Node is a node that exists, or a claim that will become one.
type Node struct {
	// Name is the node's, or the claim's while no node has joined.
	Name string `json:"name"`
	// Claim is empty for a node that Joist does not manage.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUid,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Image is the id of the machine image that the claim's instance booted.
	Image string `json:"image,omitempty"`
	// Labels and Taints are the node's, or what the claim promises.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// Requirements are those of a NodeClaim that is not launched yet.
	Requirements []karpenter.NodeSelectorRequirementWithMinValues `json:"requirements,omitempty"`
	// Allocatable is what pods may take in all. For a claim that is not launched
	// it is what the claim was planned for, so that exactly those pods fit again.
	Allocatable corev1.ResourceList `json:"allocatable"`
	Capacity    corev1.ResourceList `json:"capacity,omitempty"`
	// Used is what bound pods take, daemons included; Daemons is their part.
	Used           corev1.ResourceList `json:"used,omitempty"`
	DaemonRequests corev1.ResourceList `json:"daemons,omitempty"`
	HostPorts      []HostPort          `json:"hostPorts,omitempty"`
	Launched       bool                `json:"launched,omitempty"`
	Registered     bool                `json:"registered,omitempty"`
	Initialized    bool                `json:"initialized,omitempty"`
	// InitializedAt is the transition time of the condition.
	InitializedAt time.Time `json:"initializedAt,omitzero"`
	// MarkedForDeletion means deleting, or noticed by AWS: no pod may be planned onto it.
	MarkedForDeletion bool `json:"going,omitempty"`
	// Terminating means that its pods are gone and EC2 was asked to terminate its
	// instance. Budgets do not count such a node.
	Terminating bool `json:"terminating,omitempty"`

	Deadline time.Time `json:"deadline,omitzero"`
	Ready    bool      `json:"ready,omitempty"`
	// ReadySince is when the node became ready, by its own word.
	ReadySince time.Time `json:"readySince,omitzero"`
	// PricePerHour is what the claim says that the node was bought for, in US dollars; 0
	// where it says nothing.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	// ExpectedPods are the UIDs of the pods that the NodeClaim was planned for. They are
	// placed on it first.
	ExpectedPods []string `json:"expected,omitempty"`
	// NominatedUntil is until when pods are expected here.
	NominatedUntil time.Time `json:"nominated,omitzero"`
	LastPodEvent   time.Time `json:"lastPodEvent,omitzero"`
	Created        time.Time `json:"created,omitzero"`
	DoNotDisrupt   bool      `json:"doNotDisrupt,omitempty"`
	// ExpiresAt is when the claim's expireAfter ends it; zero for never. What is
	// left until then weighs in the cost of disruption.
	ExpiresAt time.Time `json:"expires,omitzero"`
	// HasTerminationGracePeriod says that the claim has a terminationGracePeriod, so that drift need not
	// wait for what protects its pods.
	HasTerminationGracePeriod bool `json:"bounded,omitempty"`
	// Drift is set while the claim is not what its NodePool and class ask for.
	Drift    *Drift    `json:"drift,omitempty"`
	Proposal *Proposal `json:"proposal,omitempty"`
	// Pods are the bound pods that are neither daemons nor mirrors nor ended.
	Pods []PodClass `json:"pods,omitempty"`
	// DaemonPods are the daemons and mirrors that a selector may count, or that
	// keep other pods away. Used has what they take.
	DaemonPods []PodClass `json:"daemonPods,omitempty"`
}

// Drift is the claim's Drifted condition.
type Drift struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// Proposal is what lifecycle wrote on each claim of a disruption proposal. The
// claims that carry one ID go together.
type Proposal struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	// Method is how it was found.
	Method     string    `json:"method,omitempty"`
	ProposedAt time.Time `json:"proposed"`
	// ConfirmedAt is when it began to act: from then on only its end, or its being
	// rolled back, takes it off.
	ConfirmedAt time.Time `json:"confirmed,omitzero"`
	// Replacements are the claims that must be initialized before this one goes.
	Replacements []string `json:"replacements,omitempty"`
}

// CanBeInZone reports whether the node is in the zone, or could still come to be.
func (n *Node) CanBeInZone(zone string) bool {
	if in := n.Labels[corev1.LabelTopologyZone]; in != "" || n.Launched {
		return in == zone
	}
	return !slices.ContainsFunc(n.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return karpenter.NormalizeLabel(r.Key) == corev1.LabelTopologyZone && !NewValues(r.Operator, r.Values...).Has(zone)
	})
}

// CountNewAddresses is how many addresses the node may have that a count of that time does
// not know of, because it is too young: one for itself, and one for each pod.
func (n *Node) CountNewAddresses(counted time.Time) int64 {
	if n.Claim == "" || n.Launched && n.Created.Before(counted.Add(-LaunchLag)) {
		return 0
	}
	pods := n.Used[corev1.ResourcePods]
	if !n.Launched {
		pods = n.Allocatable[corev1.ResourcePods] // what it was planned for
	}
	return 1 + pods.Value()
}

// CapacityInLimits is the capacity that counts in the pool's limits. A claim whose type is
// not known has the ceiling as its capacity; without one, what it was planned
// for is the least that it can be.
func (n *Node) CapacityInLimits() corev1.ResourceList {
	if len(n.Capacity) > 0 {
		return n.Capacity
	}
	return n.Allocatable
}

// ReschedulablePods returns the pods that need another node once theirs is removed: the pods that
// are not being deleted, and all pods of a StatefulSet, which replaces a pod only when it is gone
// (Karpenter: pkg/utils/pod/scheduling.go, IsReschedulable).
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
