package convert_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/manifest/convert"
)

// TestInstanceRequirements converts each attribute of attribute-based selection, or names it with a remedy. The
// result is read strictly.
func TestInstanceRequirements(t *testing.T) {
	const hypervisor, category = "karpenter.k8s.aws/instance-hypervisor In [nitro xen]", "karpenter.k8s.aws/instance-category NotIn [t]"
	for _, tt := range []struct {
		name, needs string
		want        []string
		remark      string
	}{
		{"defaults", `{}`, []string{hypervisor, category}, ""},
		{"ranges", `{"VCpuCount":{"Min":2,"Max":8},"MemoryMiB":{"Min":0},"TotalLocalStorageGB":{"Min":100.5},"NetworkBandwidthGbps":{"Min":2.5,"Max":10}}`, []string{
			"instance-cpu Gt [1]", "instance-cpu Lt [9]", "instance-local-nvme Gt [100]", "instance-network-bandwidth Gt [2499]", "instance-network-bandwidth Lt [10001]",
		}, ""},
		{"included", `{"BareMetal":"included","BurstablePerformance":"required","LocalStorage":"required","LocalStorageTypes":["ssd"]}`, []string{"instance-category In [t]", "instance-local-nvme Exists []"}, ""},
		{"bare metal", `{"BareMetal":"required","LocalStorage":"excluded"}`, []string{"instance-hypervisor NotIn [nitro xen]", "instance-local-nvme DoesNotExist []"}, ""},
		{"hard disks", `{"LocalStorageTypes":["hdd"]}`, nil, "LocalStorageTypes: [\"hdd\"] is not kept"},
		{"disks", `{"BaselineEbsBandwidthMbps":{"Min":1000}}`, []string{"instance-ebs-bandwidth Gt [999]"}, "which is the maximum and not the baseline"},
		{"manufacturers", `{"CpuManufacturers":["amazon-web-services","intel"]}`, []string{"instance-cpu-manufacturer In [aws intel]"}, ""},
		{"generations", `{"InstanceGenerations":["current"]}`, []string{"instance-generation Gt [2]"}, "not the same for all families"},
		{"old generations", `{"InstanceGenerations":["previous"]}`, nil, `["previous"] is not kept`},
		{"GPUs", `{"AcceleratorTypes":["gpu"],"AcceleratorCount":{"Min":1,"Max":4},"AcceleratorManufacturers":["nvidia"],"AcceleratorNames":["T4","a10g"]}`, []string{
			"instance-gpu-count Gt [0]", "instance-gpu-count Lt [5]", "instance-gpu-manufacturer In [nvidia]", "instance-gpu-name In [t4 a10g]",
		}, ""},
		{"inference", `{"AcceleratorManufacturers":["amazon-web-services"]}`, []string{"instance-accelerator-count Exists []", "instance-accelerator-manufacturer In [aws]"}, ""},
		{"no accelerator", `{"AcceleratorCount":{"Max":0}}`, []string{"instance-gpu-count DoesNotExist []", "instance-accelerator-count DoesNotExist []"}, ""},
		{"FPGAs", `{"AcceleratorTypes":["fpga"]}`, nil, `AcceleratorTypes: ["fpga"] is not kept`},
		{"accelerator memory", `{"AcceleratorTotalMemoryMiB":{"Min":1}}`, nil, "instance-gpu-memory, which is that of one GPU"},
		{"memory for a vCPU", `{"MemoryGiBPerVCpu":{"Min":4}}`, nil, "choose categories"},
		{"prices", `{"SpotMaxPricePercentageOverLowestPrice":20}`, nil, "joist.sh/price-limit"},
		{"allowed types", `{"AllowedInstanceTypes":["m5.large","c5.xlarge"]}`, []string{"node.kubernetes.io/instance-type In [m5.large c5.xlarge]"}, ""},
		{"allowed families", `{"AllowedInstanceTypes":["m5.*"]}`, []string{"instance-family In [m5]"}, ""},
		{"allowed both", `{"AllowedInstanceTypes":["m5.*","c5.large"]}`, nil, "write it as one requirement"},
		{"excluded", `{"ExcludedInstanceTypes":["m5.*","c5.large","r*"]}`, []string{"instance-family NotIn [m5]", "node.kubernetes.io/instance-type NotIn [c5.large]"}, "r* is not kept"},
		{"unknown", `{"New":1}`, nil, "InstanceRequirements.New: 1 is not kept"},
		{"another type", `{"VCpuCount":"2"}`, nil, "VCpuCount: has a value of another type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := `{"AutoScalingGroups":[{"AutoScalingGroupName":"g","MaxSize":1,"Tags":[{"Key":"kubernetes.io/cluster/prod"}],"MixedInstancesPolicy":{"LaunchTemplate":{"Overrides":[{"InstanceRequirements":` + tt.needs + `}]}}}]}`
			r := convert.Convert([]convert.Input{{Name: "asg.json", Data: []byte(text)}}, convert.ConversionOptions{})
			got := strings.Join(strings.Fields(string(r.Files[0].Text)), " ")
			for _, want := range tt.want {
				words := strings.SplitN(want, " ", 3)
				yaml := []string{words[0], "operator:", words[1]}
				if values := strings.Fields(strings.Trim(words[2], "[]")); len(values) > 0 {
					yaml = append(yaml, "values:")
					for _, value := range values {
						if value[0] >= '0' && value[0] <= '9' {
							value = `"` + value + `"`
						}
						yaml = append(yaml, "-", value)
					}
				}
				if !strings.Contains(got, strings.Join(yaml, " ")) {
					t.Errorf("no %q in\n%s", yaml, r.Files[0].Text)
				}
			}
			var remarks []string
			for _, remark := range r.Remarks {
				remarks = append(remarks, remark.String())
				if strings.Contains(remark.Text, "have mistakes") {
					t.Error(remark)
				}
			}
			if all := strings.Join(remarks, "\n"); !strings.Contains(all, tt.remark) || tt.remark == "" && strings.Contains(all, "InstanceRequirements") {
				t.Errorf("remarks %s\nwant %q", all, tt.remark)
			}
		})
	}
}

// TestProvisionerDefaultsOfOldNames: a requirement under an older name of a label prevents the default.
func TestProvisionerDefaultsOfOldNames(t *testing.T) {
	const in = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec:\n  requirements:\n  - {key: beta.kubernetes.io/arch, operator: In, values: [arm64]}\n  - {key: beta.kubernetes.io/instance-type, operator: In, values: [m6g.large]}\n"
	r := convert.Convert([]convert.Input{{Name: "a.yaml", Data: []byte(in)}}, convert.ConversionOptions{})
	if got := string(r.Files[0].Text); strings.Contains(got, "amd64") || strings.Contains(got, "instance-category") || !strings.Contains(got, "on-demand") {
		t.Errorf("got %s", got)
	}
}
