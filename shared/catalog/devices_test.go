package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

func sharing(t *testing.T, value string) catalog.GPUSharing {
	t.Helper()
	s, err := catalog.ParseGPUSharing(value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The embedded devices are complete: one template for each type and driver, with a name for each device
// and a pool that no other type has. A type in the catalogue has as many devices as GPUs.
func TestEmbeddedDevices(t *testing.T) {
	for _, tt := range []struct {
		driver, pool, device string
		types                int
	}{
		{catalog.NVIDIADriver, "gpus-", "gpu-", 53},
		{catalog.EFADriver, "network-", "efa-", 29},
	} {
		names := catalog.TypesWithDevices(tt.driver)
		if len(names) != tt.types {
			t.Errorf("%s: %d types, want %d", tt.driver, len(names), tt.types)
		}
		for _, name := range names {
			template, bindings, _ := catalog.DevicesOf(name, tt.driver, catalog.GPUSharing{})
			if template.Driver != tt.driver || template.Pool != tt.pool+name || len(template.Devices) == 0 || template.SharedCounters != nil {
				t.Errorf("template of %s: %+v", name, template)
			}
			seen := map[string]bool{}
			for _, device := range template.Devices {
				if !strings.HasPrefix(device.Name, tt.device) || seen[device.Name] || len(device.Attributes) < 5 {
					t.Errorf("device of %s: %+v", name, device)
				}
				seen[device.Name] = true
			}
			for _, binding := range bindings {
				if len(binding.Devices) != len(template.Devices) || !strings.HasPrefix(string(binding.Attribute), tt.driver+"/") {
					t.Errorf("binding of %s: %+v", name, binding)
				}
			}
			if want := map[string]int{catalog.NVIDIADriver: 2}[tt.driver]; len(bindings) != want {
				t.Errorf("%d bindings of %s, want %d", len(bindings), name, want)
			}
		}
	}
	if _, _, ok := catalog.DevicesOf("m5.large", catalog.NVIDIADriver, catalog.GPUSharing{}); ok {
		t.Error("m5.large has GPUs")
	}
}

// The catalogue and the devices come from different sources; for types in both the numbers agree.
func TestDevicesMatchHardware(t *testing.T) {
	c, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range catalog.TypesWithDevices(catalog.NVIDIADriver) {
		hardware, known := c.Find(name)
		if template, _, _ := catalog.DevicesOf(name, catalog.NVIDIADriver, catalog.GPUSharing{}); known && len(hardware.GPUs) == 1 {
			compared++
			if int64(len(template.Devices)) != hardware.GPUs[0].Count {
				t.Errorf("%s has %d devices and %d GPUs", name, len(template.Devices), hardware.GPUs[0].Count)
			}
		}
	}
	if compared < 20 {
		t.Errorf("compared only %d types", compared)
	}
}

func TestGPUSharing(t *testing.T) {
	for value, want := range map[string]string{
		"":          `{"memory":{"value":"15Gi"}}`,
		"disabled":  `{"memory":{"value":"15Gi"}}`,
		"memory":    `{"memory":{"value":"15Gi","requestPolicy":{"default":"15Gi","validRange":{"min":"1Mi","max":"15Gi","step":"1Mi"}}}}`,
		"unlimited": `{"memory":{"value":"15Gi","requestPolicy":{"default":"0","validRange":{"min":"0","max":"15Gi","step":"1Mi"}}}}`,
		"4": `{"memory":{"value":"15Gi","requestPolicy":{"default":"0","validRange":{"min":"0","max":"15Gi","step":"1Mi"}}},` +
			`"shares":{"value":"4","requestPolicy":{"default":"1","validRange":{"min":"1","max":"4","step":"1"}}}}`,
	} {
		mode := sharing(t, value)
		template, _, _ := catalog.DevicesOf("g4dn.xlarge", catalog.NVIDIADriver, mode)
		got, err := json.Marshal(template.Devices[0].Capacity)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
		shared := template.Devices[0].AllowMultipleAllocations
		if (shared != nil) != mode.IsEnabled() || mode.IsEnabled() == (value == "" || value == "disabled") {
			t.Errorf("%q: enabled %t, allows several allocations %v", value, mode.IsEnabled(), shared)
		}
	}
	// The shared data is unchanged.
	if plain, _, _ := catalog.DevicesOf("g4dn.xlarge", catalog.NVIDIADriver, catalog.GPUSharing{}); plain.Devices[0].AllowMultipleAllocations != nil {
		t.Error("sharing changed the embedded devices")
	}
	for _, value := range []string{"0", "-1", "1.5", "all", "Memory", " memory"} {
		if _, err := catalog.ParseGPUSharing(value); err == nil {
			t.Errorf("ParseGPUSharing(%q) returned no error", value)
		}
	}
}
