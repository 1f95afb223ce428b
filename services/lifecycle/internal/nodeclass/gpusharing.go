package nodeclass

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// checkGPUSharing returns the problem of the annotation for sharing GPUs, or nil. The annotation must
// match the settings of the NVIDIA driver, which Joist cannot read, so nodes of the class are launched
// only if it is understood.
func (e *statusEditor) checkGPUSharing() *event.Problem {
	const key = karpenter.NVIDIAConsumableCapacityAnnotationKey
	sharing, err := catalog.ParseGPUSharing(e.class.Annotations[key])
	switch {
	case err != nil:
		return &event.Problem{Condition: conditionValidated, Reason: event.NVIDIAConsumableCapacityInvalid, Message: fmt.Sprintf("annotation %s, %s", key, err)}
	case sharing.IsEnabled() && !e.SharedGPUs:
		return &event.Problem{Condition: conditionValidated, Reason: event.DRADisabled,
			Message: fmt.Sprintf("annotation %s enables GPU sharing, but the DRANVIDIAGPU feature gate is disabled", key)}
	}
	return nil
}
