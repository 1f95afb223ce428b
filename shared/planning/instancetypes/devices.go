package instancetypes

import (
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// addDevices adds the devices of the drivers whose feature gates are on. The class must have a valid
// annotation for sharing GPUs: lifecycle keeps a class with an invalid one from being ready.
func (t *Type) addDevices(class *karpenter.EC2NodeClass, settings planning.Settings) {
	if !settings.PlanDRARequests {
		return
	}
	for _, source := range []struct {
		driver  string
		enabled bool
	}{{catalog.NVIDIADriver, settings.Gates.DRANVIDIAGPU}, {catalog.EFADriver, settings.Gates.DRAEFA}} {
		if !source.enabled {
			continue
		}
		sharing, _ := catalog.ParseGPUSharing(class.Annotations[karpenter.NVIDIAConsumableCapacityAnnotationKey])
		if template, bindings, ok := catalog.DevicesOf(t.Name, source.driver, sharing); ok {
			t.DeviceTemplates, t.DeviceBindings = append(t.DeviceTemplates, template), append(t.DeviceBindings, bindings...)
		}
	}
}
