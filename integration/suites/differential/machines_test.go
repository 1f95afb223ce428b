package differential

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// machinesFile is in testdata, so that any planner can read the scenarios there and the
// printed ones.
const machinesFile = "machines.json"

func TestMachinesFile(t *testing.T) {
	text, err := json.MarshalIndent(machines(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", machinesFile), string(text)+"\n")
}

// family is a series of types that differ only in size.
type family struct {
	name, category, arch string
	gibPerCPU            int64
	// price is the on-demand price of a CPU in US dollars per hour.
	price float64
	sizes []int64
	gpus  bool
}

var families = []family{
	{"c5", "c", "amd64", 2, 0.0425, []int64{2, 4, 8, 16}, false},
	{"m5", "m", "amd64", 4, 0.048, []int64{2, 4, 8, 16, 32}, false},
	{"r5", "r", "amd64", 8, 0.063, []int64{2, 4, 8}, false},
	{"c6g", "c", "arm64", 2, 0.034, []int64{1, 2, 4, 8}, false},
	{"m6g", "m", "arm64", 4, 0.0385, []int64{1, 2, 4, 8, 16}, false},
	{"g4", "g", "amd64", 4, 0.131, []int64{4, 8}, true},
}

var zones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

const labelPrefix = "karpenter.k8s.aws/instance-"

// machines returns a few dozen types: not every type is in every zone, some offerings are
// unavailable, and spot prices differ by zone.
func machines() []planvalidator.InstanceType {
	var all []planvalidator.InstanceType
	for _, f := range families {
		for i, cpus := range f.sizes {
			t := planvalidator.InstanceType{
				Name: fmt.Sprintf("%s.%d", f.name, cpus), Arch: f.arch, OS: []string{"linux"},
				Capacity: corev1.ResourceList{
					"cpu": *resource.NewQuantity(cpus, resource.DecimalSI), "memory": *resource.NewQuantity(cpus*f.gibPerCPU<<30, resource.BinarySI),
					"pods": *resource.NewQuantity(8+4*cpus, resource.DecimalSI), "ephemeral-storage": resource.MustParse("20Gi"),
				},
				Overhead: corev1.ResourceList{"cpu": resource.MustParse("80m"), "memory": resource.MustParse("300Mi")},
				Labels: map[string]string{
					labelPrefix + "category": f.category, labelPrefix + "family": f.name, labelPrefix + "size": strconv.FormatInt(cpus, 10),
					labelPrefix + "generation": f.name[1:2], labelPrefix + "cpu": strconv.FormatInt(cpus, 10),
					labelPrefix + "memory": strconv.FormatInt(cpus*f.gibPerCPU<<10, 10), corev1.LabelTopologyRegion: "us-east-1",
				},
			}
			if f.gpus {
				t.Capacity["nvidia.com/gpu"] = *resource.NewQuantity(cpus/4, resource.DecimalSI)
				t.Labels[labelPrefix+"gpu-manufacturer"], t.Labels[labelPrefix+"gpu-count"] = "nvidia", strconv.FormatInt(cpus/4, 10)
			}
			t.Offerings = offerings(f, i, cpus)
			all = append(all, t)
		}
	}
	return all
}

func offerings(f family, place int, cpus int64) []planvalidator.Offering {
	var all []planvalidator.Offering
	for z, zone := range zones {
		if (place+z+len(f.name))%7 == 0 {
			continue // not in this zone
		}
		onDemand := f.price * float64(cpus)
		spot := onDemand * (0.3 + 0.08*float64((place+2*z)%5))
		id := fmt.Sprintf("use1-az%d", z+1)
		all = append(all,
			planvalidator.Offering{Zone: zone, ZoneID: id, CapacityType: "on-demand", Price: cents(onDemand), Available: true},
			planvalidator.Offering{Zone: zone, ZoneID: id, CapacityType: "spot", Price: cents(spot), Available: (place+z)%4 != 3})
	}
	return all
}

// cents rounds to hundredths of a cent, like price lists.
func cents(price float64) float64 { return math.Round(price*1e4) / 1e4 }
