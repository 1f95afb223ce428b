package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// deviceSource is one map of published devices, and the names of its pools and devices.
type deviceSource struct {
	driver, pool, device, file, variable string
}

var deviceSources = []deviceSource{
	{catalog.NVIDIADriver, "gpus-", "gpu-", "zz_generated_gpu_metadata.go", "GPUMetadataByInstanceType"},
	{catalog.EFADriver, "network-", "efa-", "zz_generated_efa_metadata.go", "EFAMetadataByInstanceType"},
}

// readDevices reads the devices of every instance type.
func readDevices(module string) (catalog.StoredDevices, error) {
	byType := map[string][]catalog.DeviceTemplate{}
	for _, source := range deviceSources {
		entries, err := variable(filepath.Join(module, "pkg", "providers", "drametadata", source.file), source.variable)
		if err != nil {
			return catalog.StoredDevices{}, err
		}
		for name, value := range entries {
			template, err := source.template(name, value)
			if err != nil {
				return catalog.StoredDevices{}, fmt.Errorf("reading the %s devices of %s: %w", source.driver, name, err)
			}
			byType[name] = append(byType[name], template)
		}
	}
	out := catalog.StoredDevices{Sources: []catalog.Provenance{karpenterModule.Provenance}}
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		out.Types = append(out.Types, catalog.TypeDevices{Type: name, Templates: byType[name]})
	}
	return out, nil
}

func (s deviceSource) template(name string, value ast.Expr) (catalog.DeviceTemplate, error) {
	out := catalog.DeviceTemplate{Driver: s.driver, Pool: s.pool + name}
	fields := fieldsOf(value)
	for i, literal := range elements(fields["Devices"]) {
		device := resourcev1.Device{Name: fmt.Sprint(s.device, i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		parts := fieldsOf(literal)
		for key, attribute := range entriesOf(parts["Attributes"]) {
			device.Attributes[resourcev1.QualifiedName(key)] = attributeOf(attribute)
		}
		for key, capacity := range entriesOf(parts["Capacity"]) {
			amount, err := resource.ParseQuantity(text(argumentOf(fieldsOf(capacity)["Value"])))
			if err != nil {
				return out, fmt.Errorf("parsing capacity %s: %w", key, err)
			}
			if device.Capacity == nil {
				device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
			}
			device.Capacity[resourcev1.QualifiedName(key)] = resourcev1.DeviceCapacity{Value: amount}
		}
		out.Devices = append(out.Devices, device)
	}
	if count := integer(fields["Count"]); count == 0 || count != int64(len(out.Devices)) {
		return out, fmt.Errorf("%d devices, and its count is %d", len(out.Devices), count)
	}
	return out, nil
}

func attributeOf(literal ast.Expr) resourcev1.DeviceAttribute {
	var out resourcev1.DeviceAttribute
	for name, value := range fieldsOf(literal) {
		switch argument := argumentOf(value); name {
		case "StringValue":
			out.StringValue = new(text(argument))
		case "VersionValue":
			out.VersionValue = new(text(argument))
		case "IntValue":
			out.IntValue = new(integer(argument))
		case "BoolValue":
			out.BoolValue = new(boolean(argument))
		}
	}
	return out
}

// argumentOf returns the argument of a function call with one argument.
func argumentOf(e ast.Expr) ast.Expr {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		return call.Args[0]
	}
	return nil
}
