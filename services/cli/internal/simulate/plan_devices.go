package simulate

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// planDevices adds the devices to a snapshot, and returns the lookup of the pods' claims. Without any
// object of Dynamic Resource Allocation it does nothing, as in a cluster where it is off.
func (a *PlanResult) planDevices(s *planning.Snapshot, d podspec.FileDevices) *podspec.Claims {
	if d.IsEmpty() {
		return nil
	}
	s.Settings.PlanDRARequests, s.Settings.Gates.DRANVIDIAGPU, s.Settings.Gates.DRAEFA = true, true, true
	a.assume("ResourceClaims are planned as with IGNORE_DRA_REQUESTS=false and the AWS feature gates DRANVIDIAGPU and DRAEFA")
	s.Devices = d.State()
	return d.Claims()
}
