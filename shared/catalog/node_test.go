package catalog_test

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestValidateNamesInvalidSettings(t *testing.T) {
	tests := []struct {
		name    string
		kubelet karpenter.KubeletConfiguration
		want    string // part of the error; "" means no error
	}{
		{"nothing set", karpenter.KubeletConfiguration{}, ""},
		{"good", karpenter.KubeletConfiguration{
			KubeReserved: map[string]string{"cpu": "100m"}, EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "1Gi"},
		}, ""},
		{"quantity", karpenter.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "one"}}, `kubeReserved[cpu]: invalid quantity "one"`},
		{"system", karpenter.KubeletConfiguration{SystemReserved: map[string]string{"memory": "1GiB"}}, `systemReserved[memory]: invalid quantity "1GiB"`},
		{"percentage", karpenter.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "five%"}}, `evictionHard[memory.available]`},
		{"too much", karpenter.KubeletConfiguration{EvictionSoft: map[string]string{"memory.available": "101%"}}, `evictionSoft[memory.available]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := catalog.NodeConfig{Kubelet: &test.kubelet}.Validate()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestNewNodeConfig(t *testing.T) {
	class := &karpenter.EC2NodeClass{}
	class.Name = "default"
	class.Spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
	class.Spec.InstanceStorePolicy = new(karpenter.InstanceStorePolicyRAID0)
	class.Spec.BlockDeviceMappings = []karpenter.BlockDeviceMapping{device("/dev/xvdb", "80Gi")}
	class.Spec.Kubelet = &karpenter.KubeletConfiguration{MaxPods: new(int32(40))}
	cfg, err := catalog.NewNodeConfig(class)
	if err != nil {
		t.Fatal(err)
	}
	_, _, allocatable := catalog.NodeResources(gpu, cfg)
	check(t, "allocatable", allocatable, want{"pods": "40"})
	capacity, _, _ := catalog.NodeResources(x86, cfg)
	check(t, "capacity", capacity, want{"ephemeral-storage": "80Gi"})

	class.Spec.Kubelet.KubeReserved = map[string]string{"cpu": "one"}
	if _, err := catalog.NewNodeConfig(class); err == nil || !strings.Contains(err.Error(), "EC2NodeClass default") {
		t.Errorf("error = %v, want it to name the class", err)
	}
}
