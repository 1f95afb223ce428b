package watcher

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Observation is the input of CollectDocuments: a feed that nothing else reads, and the
// other values of the documents.
type Observation struct {
	// Feed has the objects of WatchedKinds, with the fields that Trims leaves.
	Feed      cluster.Feed
	Cluster   event.Cluster
	Catalogue event.Ref
	Settings  planning.Settings
	// Unavailable are the entries of the ConfigMap joist-unavailable.
	Unavailable []planning.Unavailable
	// DefaultConstraints are added to pods that have no topology spread constraints.
	DefaultConstraints []corev1.TopologySpreadConstraint
	// Repair has the policies of node repair; nil if it is off.
	Repair *repair.Matcher
	// Outbox and Seq identify the batch.
	Outbox string
	Seq    uint64
	Now    time.Time
}

// CollectDocuments returns the batch and the snapshot that the watcher would store at that moment,
// byte for byte, if no bisection is active. The CLI plans and explains a running cluster with them.
func CollectDocuments(o Observation) (planning.Batch, planning.Snapshot) {
	state := newState(o.Feed, o.DefaultConstraints)
	view := state.View(collect.Inputs{
		Cluster: o.Cluster, Catalogue: o.Catalogue, Settings: o.Settings, Now: o.Now.UTC(),
		Unavailable: planning.FilterUnavailable(o.Unavailable, o.Now),
	})
	return newBatch(o.Outbox, o.Seq, view), state.DisruptionSnapshot(view, o.Repair)
}

// newState returns the state of a feed whose pods get the default constraints.
func newState(feed cluster.Feed, constraints []corev1.TopologySpreadConstraint) *collect.State {
	if len(constraints) > 0 {
		feed = collect.AddDefaultSpread(feed, constraints)
	}
	return collect.NewState(feed)
}

// newBatch returns the batch of a view.
func newBatch(outbox string, seq uint64, view collect.View) planning.Batch {
	return planning.Batch{
		Outbox: outbox, Seq: seq, Snapshot: view.Snapshot, Pending: view.Pending, Ignored: view.Ignored, Unplanned: view.Unplanned,
	}
}

// WatchedKinds returns the kinds to watch: every input of a decision. Only Joist's own ConfigMaps
// are watched.
func WatchedKinds(given planning.Settings, hasDefaultSpread bool) []cluster.Kind {
	kinds := []cluster.Kind{
		cluster.Pods, cluster.Nodes, cluster.Namespaces, cluster.DaemonSets, cluster.DisruptionBudgets,
		cluster.VolumeClaims, cluster.Volumes, cluster.StorageClasses, cluster.CSINodes, cluster.VolumeAttachments,
		cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses, cluster.ConfigMaps,
	}
	// Do not watch kinds behind disabled feature gates: the cluster may lack their CRDs, and the
	// cache would never sync.
	gates := given.Gates
	if gates.NodeOverlay {
		kinds = append(kinds, cluster.NodeOverlays)
	}
	if gates.CapacityBuffer {
		kinds = append(kinds, cluster.CapacityBuffers, cluster.PodTemplates, cluster.Deployments, cluster.StatefulSets, cluster.ReplicaSets)
	}
	if given.PlanDRARequests {
		kinds = append(kinds, cluster.DeviceClasses, cluster.ResourceSlices, cluster.ResourceClaims)
	}
	if hasDefaultSpread {
		kinds = append(kinds, cluster.Services, cluster.ReplicationControllers)
		if !gates.CapacityBuffer {
			kinds = append(kinds, cluster.StatefulSets, cluster.ReplicaSets)
		}
	}
	return kinds
}
