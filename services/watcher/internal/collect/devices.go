package collect

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// lookUpClaims returns the lookup of ResourceClaims, or nil if devices are not planned.
func (g Inputs) lookUpClaims(cache cluster.Cache) *podspec.Claims {
	if !g.Settings.PlanDRARequests {
		return nil
	}
	return podspec.NewClaims(cache.Get)
}

// writeDeviceSupply adds to a supply key what determines whether a new node can hold a pod with
// ResourceClaims: the DeviceClasses, the devices that belong to no node, and the claims of pending
// pods. The devices of nodes are not part of it: kube-scheduler retries the pod when they change.
func (v View) writeDeviceSupply(b *strings.Builder) {
	out := json.NewEncoder(b)
	for i := range v.Snapshot.Devices.Classes {
		class := &v.Snapshot.Devices.Classes[i]
		_ = out.Encode([]any{class.Name, class.Spec}) // A builder returns no error.
	}
	for i := range v.Snapshot.Devices.Slices {
		if slice := &v.Snapshot.Devices.Slices[i]; slice.Spec.NodeName == nil {
			_ = out.Encode([]any{slice.Name, slice.Spec})
		}
	}
	used := map[cluster.Key]bool{}
	for _, class := range v.Pending {
		for _, claim := range class.Spec.Claims {
			fmt.Fprintf(b, " %s", claim.Problem)
			used[cluster.Key{Namespace: class.Spec.Namespace, Name: claim.Name}] = true
		}
	}
	for i := range v.Snapshot.Devices.Claims {
		if claim := &v.Snapshot.Devices.Claims[i]; used[cluster.KeyOf(claim)] {
			_ = out.Encode([]any{claim.Name, claim.Status.Allocation})
		}
	}
}

// updateDevices reads which objects of Dynamic Resource Allocation changed, and marks the nodes of the
// pods that use a changed claim. A change is not urgent: while a pod waits for a claim, each view is
// built again.
func (s *State) updateDevices() {
	claims := s.feed.TakeChanges(cluster.ResourceClaims)
	classes, slices := s.feed.TakeChanges(cluster.DeviceClasses), s.feed.TakeChanges(cluster.ResourceSlices)
	if claims.Empty() && classes.Empty() && slices.Empty() {
		return
	}
	s.isCurrent = false
	if claims.All {
		s.allDirty = true
		return
	}
	if len(claims.Keys) == 0 {
		return
	}
	changed := make(map[cluster.Key]bool, len(claims.Keys))
	for _, key := range claims.Keys {
		changed[key] = true
	}
	for key, pod := range s.pods {
		for _, name := range podspec.ClaimNames(pod) {
			if changed[cluster.Key{Namespace: key.Namespace, Name: name}] {
				s.dirtyNodes[pod.Spec.NodeName] = true
			}
		}
	}
}
