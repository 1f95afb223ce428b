package instancetypes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestDeviceTemplates checks that each feature gate adds the devices of its driver, and that none has
// an effect while devices are not planned.
func TestDeviceTemplates(t *testing.T) {
	const gpu, efa = catalog.NVIDIADriver, catalog.EFADriver
	on := func(gates planning.Gates) planning.Settings {
		return planning.Settings{PlanDRARequests: true, Gates: gates}
	}
	for _, tt := range []struct {
		name     string
		settings planning.Settings
		want     []string
	}{
		{"without planning of devices", planning.Settings{Gates: planning.Gates{DRANVIDIAGPU: true, DRAEFA: true}}, nil},
		{"without gates", on(planning.Gates{}), nil},
		{"GPUs", on(planning.Gates{DRANVIDIAGPU: true}), []string{gpu}},
		{"EFA", on(planning.Gates{DRAEFA: true}), []string{efa}},
		{"both", on(planning.Gates{DRANVIDIAGPU: true, DRAEFA: true}), []string{gpu, efa}},
	} {
		snapshot := planningtest.NewBatch().Snapshot
		snapshot.Settings = tt.settings
		var drivers []string
		for _, template := range findType(t, snapshot, "g4dn.8xlarge").DeviceTemplates {
			drivers = append(drivers, template.Driver)
		}
		if diff := cmp.Diff(tt.want, drivers); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestDevicesOfClassAndOverlay checks that an EC2NodeClass shares only its own GPUs, and that types
// with overlays keep their devices.
func TestDevicesOfClassAndOverlay(t *testing.T) {
	snapshot := planningtest.NewBatch().Snapshot
	snapshot.Settings = planning.Settings{PlanDRARequests: true, Gates: planning.Gates{DRANVIDIAGPU: true, NodeOverlay: true}}
	shared := *snapshot.NodeClasses[0].DeepCopy()
	shared.Name, shared.Annotations = "shared", map[string]string{karpenter.NVIDIAConsumableCapacityAnnotationKey: "2"}
	snapshot.NodeClasses = append(snapshot.NodeClasses, shared)
	snapshot.NodeOverlays = []karpenter.NodeOverlay{overlay("dear", costs("9"))}
	stock := instancetypes.New(snapshot, planningtest.NewCatalogue())
	isShared := func(types []instancetypes.Type) bool {
		for _, one := range types {
			if one.Name == "g4dn.xlarge" {
				if len(one.DeviceTemplates) != 1 || len(one.DeviceBindings) != 2 {
					t.Errorf("%d templates and %d bindings", len(one.DeviceTemplates), len(one.DeviceBindings))
				}
				return one.DeviceTemplates[0].Devices[0].AllowMultipleAllocations != nil
			}
		}
		t.Fatal("no g4dn.xlarge")
		return false
	}
	if class := snapshot.NodeClasses[0].Name; isShared(stock.ByNodeClass[class]) || !isShared(stock.ByNodeClass["shared"]) {
		t.Error("the sharing of one class affects another")
	}
	pool := &snapshot.NodePools[0]
	if _, overlaid := stock.ByNodePool[pool.Name]; !overlaid || isShared(stock.TypesForPool(pool.Name, pool.Spec.Template.Spec.NodeClassRef.Name)) {
		t.Error("the overlay is not applied, or changes devices")
	}
}

func findType(t *testing.T, snapshot planning.Snapshot, name string) instancetypes.Type {
	t.Helper()
	for _, one := range instancetypes.New(snapshot, planningtest.NewCatalogue()).ByNodeClass[snapshot.NodeClasses[0].Name] {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("no %s", name)
	return instancetypes.Type{}
}
