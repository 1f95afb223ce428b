package sidebyside

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// families and sizes are those of the instance types of both sides.
var (
	families = []string{"m5", "c5", "r5", "m6i", "c6i", "r6i", "m7i", "c7i", "r7i"}
	sizes    = []string{"large", "xlarge", "2xlarge", "4xlarge"}
)

// zones are those of both sides.
var zones = []string{testbed.Region + "a", testbed.Region + "b", testbed.Region + "c"}

// marketTypes returns the instance types of both sides.
func marketTypes(t *testing.T) []catalog.InstanceType {
	t.Helper()
	all, err := catalog.EmbeddedCatalogue(testbed.Region)
	if err != nil {
		t.Fatal(err)
	}
	types := slices.DeleteFunc(slices.Clone(all.Types), func(kind catalog.InstanceType) bool {
		family, size, _ := strings.Cut(kind.Name, ".")
		return !slices.Contains(families, family) || !slices.Contains(sizes, size)
	})
	if len(types) < 20 {
		t.Fatalf("%d instance types, want at least 20", len(types))
	}
	return types
}

// kwokType is an instance type in the file of the kwok provider (Karpenter: kwok/cloudprovider/helpers.go).
type kwokType struct {
	Name             string              `json:"name"`
	Offerings        []kwokOffering      `json:"offerings"`
	Architecture     string              `json:"architecture"`
	OperatingSystems []string            `json:"operatingSystems"`
	Resources        corev1.ResourceList `json:"resources"`
}

type kwokOffering struct {
	Price        float64
	Available    bool
	Requirements []corev1.NodeSelectorRequirement
}

// kwokReserved is what the kwok provider subtracts from the resources of every type.
var kwokReserved = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("10Mi")}

// kwokTypes returns types of the kwok provider with the same allocatable resources, offerings and prices.
func kwokTypes(types []catalog.InstanceType) []kwokType {
	var out []kwokType
	for _, kind := range types {
		_, _, allocatable := catalog.NodeResources(kind, catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
		one := kwokType{
			Name: kind.Name, Architecture: kind.Arch, OperatingSystems: []string{catalog.Linux},
			Resources: karpenter.SumResources(allocatable, kwokReserved),
		}
		for _, o := range kind.Offerings {
			if !o.Available || !o.HasPrice() || !slices.Contains(zones, o.Zone) {
				continue
			}
			is := func(key, value string) corev1.NodeSelectorRequirement {
				return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
			}
			one.Offerings = append(one.Offerings, kwokOffering{
				Price: o.PricePerHour, Available: true,
				Requirements: []corev1.NodeSelectorRequirement{is(karpenter.CapacityTypeLabelKey, o.CapacityType), is(corev1.LabelTopologyZone, o.Zone)},
			})
		}
		out = append(out, one)
	}
	return out
}

// writeKwokTypes writes the file for the kwok provider, and returns its path.
func writeKwokTypes(t *testing.T, types []catalog.InstanceType) string {
	t.Helper()
	text, err := json.Marshal(kwokTypes(types))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "instance-types.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyKwokCRDs returns a folder with the CRDs of Karpenter's kwok provider, and the EC2NodeClass that the test bed's cache reads.
func copyKwokCRDs(t *testing.T) string {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter").Output()
	if err != nil {
		t.Fatalf("finding Karpenter's module: %v", err)
	}
	into := t.TempDir()
	for _, pattern := range []string{
		filepath.Join(strings.TrimSpace(string(module)), "kwok", "charts", "crds", "*.yaml"),
		filepath.Join(strings.TrimSpace(string(module)), "kwok", "apis", "crds", "*.yaml"),
		filepath.Join(testbed.Root, "deploy", "charts", "joist-crd", "files", "*ec2nodeclasses.yaml"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s matches no CRD (%v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(filepath.Join(into, filepath.Base(file)), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return into
}

// TestKwokTypesMatchCatalogue checks that the kwok provider would offer what Joist's planner does.
func TestKwokTypesMatchCatalogue(t *testing.T) {
	types := marketTypes(t)
	for i, one := range kwokTypes(types) {
		_, _, want := catalog.NodeResources(types[i], catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
		for name, quantity := range want {
			got := one.Resources[name]
			got.Sub(kwokReserved[name])
			if got.Cmp(quantity) != 0 {
				t.Errorf("%s has %s of %s, want %s", one.Name, got.String(), name, quantity.String())
			}
		}
		if len(one.Offerings) < 2 {
			t.Errorf("%s has the offerings %v", one.Name, one.Offerings)
		}
	}
	if path := writeKwokTypes(t, types); !strings.HasSuffix(path, ".json") {
		t.Error(path)
	}
}

// poolVariables returns the variables of testdata/nodepool.yaml.
func poolVariables(group, kind string, types []catalog.InstanceType) map[string]string {
	var names []string
	for _, one := range types {
		names = append(names, one.Name)
	}
	return map[string]string{"CLASS_GROUP": group, "CLASS_KIND": kind, "INSTANCE_TYPES": strings.Join(names, ", "), "ZONES": strings.Join(zones, ", ")}
}

// priceOf returns a function with the price of an instance with the labels of its NodeClaim, in US dollars.
func priceOf(types []catalog.InstanceType) func(labels map[string]string) (float64, error) {
	prices := map[string]float64{}
	for _, kind := range types {
		for _, o := range kind.Offerings {
			prices[kind.Name+" "+o.Zone+" "+o.CapacityType] = o.PricePerHour
		}
	}
	return func(labels map[string]string) (float64, error) {
		name := labels[corev1.LabelInstanceTypeStable] + " " + labels[corev1.LabelTopologyZone] + " " + labels[karpenter.CapacityTypeLabelKey]
		price, known := prices[name]
		if !known {
			return 0, fmt.Errorf("no price of %q", name)
		}
		return price, nil
	}
}
