package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/aws/karpenter-provider-aws/pkg/providers/drametadata"
	"github.com/aws/karpenter-provider-aws/pkg/providers/efadra"
	"github.com/aws/karpenter-provider-aws/pkg/providers/nvidiadra"
	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// Every instance type has the devices and bindings of upstream's provider, in each mode of sharing
// GPUs, and no other type has any.
func TestDeviceTemplates(t *testing.T) {
	for _, annotation := range []string{"", "disabled", "memory", "unlimited", "1", "7"} {
		mode, err := nvidiadra.ParseConsumableCapacity(annotation)
		if err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(drametadata.GPUMetadataByInstanceType))
		compareDevices(t, catalog.NVIDIADriver, annotation, names, func(types []*cloudprovider.InstanceType) map[string]cloudprovider.DynamicResources {
			return nvidiadra.NewDefaultProvider().ResolveDynamicResources(t.Context(), types, mode)
		})
	}
	names := slices.Sorted(maps.Keys(drametadata.EFAMetadataByInstanceType))
	compareDevices(t, catalog.EFADriver, "", names, func(types []*cloudprovider.InstanceType) map[string]cloudprovider.DynamicResources {
		return efadra.NewDefaultProvider().ResolveDynamicResources(t.Context(), types)
	})
}

func compareDevices(t *testing.T, driver, annotation string, names []string, resolve func([]*cloudprovider.InstanceType) map[string]cloudprovider.DynamicResources) {
	t.Helper()
	sharing, err := catalog.ParseGPUSharing(annotation)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, catalog.TypesWithDevices(driver)); diff != "" {
		t.Errorf("types with devices of %s (-upstream +joist):\n%s", driver, diff)
	}
	for _, name := range names {
		theirs := resolve([]*cloudprovider.InstanceType{{Name: name}})[name]
		template, bindings, _ := catalog.DevicesOf(name, driver, sharing)
		if diff := cmp.Diff(formatUpstream(theirs), formatOurs(template, bindings)); diff != "" {
			t.Errorf("devices of %s with sharing %q (-upstream +joist):\n%s", name, annotation, diff)
		}
	}
}

// formatUpstream and formatOurs return one line for each device and binding.
func formatUpstream(of cloudprovider.DynamicResources) []string {
	var out []string
	for _, template := range of.ResourceSliceTemplates {
		for _, d := range template.Devices {
			out = append(out, formatDevice(template.Driver.Value(), template.Pool.Name.Value(), d.Name.Value(), d.Attributes, d.Capacity, d.AllowMultipleAllocations))
		}
	}
	for _, binding := range of.AttributeBindings {
		for _, d := range binding.Devices {
			out = append(out, fmt.Sprint(binding.Attribute, " ", d.Driver.Value(), " ", d.Pool.Value(), " ", d.Device.Value()))
		}
	}
	return out
}

func formatOurs(template catalog.DeviceTemplate, bindings []catalog.DeviceBinding) []string {
	var out []string
	for _, d := range template.Devices {
		shared := d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		out = append(out, formatDevice(template.Driver, template.Pool, d.Name, d.Attributes, d.Capacity, shared))
	}
	for _, binding := range bindings {
		for _, d := range binding.Devices {
			out = append(out, fmt.Sprint(binding.Attribute, " ", d.Driver, " ", d.Pool, " ", d.Device))
		}
	}
	return out
}

func formatDevice(driver, pool, name string, attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity, shared bool) string {
	text, err := json.Marshal(struct {
		Driver, Pool, Name string
		Attributes         map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
		Capacity           map[resourcev1.QualifiedName]resourcev1.DeviceCapacity
		Shared             bool
	}{driver, pool, name, attributes, capacity, shared})
	if err != nil {
		panic(err)
	}
	return string(text)
}
