package catalog_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestValidateNamesInvalidSettings(t *testing.T) {
	tests := []struct {
		name    string
		kubelet karpenter.ParsedKubelet
		want    string // part of the error; "" means no error
	}{
		{"nothing set", karpenter.ParsedKubelet{}, ""},
		{"good", karpenter.ParsedKubelet{
			KubeReserved: map[string]string{"cpu": "vcpus * 10"}, EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "1Gi"},
		}, ""},
		{"quantity", karpenter.ParsedKubelet{EvictionHard: map[string]string{"memory.available": "1GiB"}}, `evictionHard[memory.available]: invalid quantity "1GiB"`},
		{"percentage", karpenter.ParsedKubelet{EvictionHard: map[string]string{"memory.available": "five%"}}, `evictionHard[memory.available]`},
		{"too much", karpenter.ParsedKubelet{EvictionSoft: map[string]string{"memory.available": "101%"}}, `evictionSoft[memory.available]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := catalog.NodeConfig{Kubelet: test.kubelet}.Validate()
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
	class.Spec.Kubelet = karpenter.KubeletConfiguration{"maxPods": {Raw: []byte(`40`)}, "logging": {Raw: []byte(`{"verbosity":3}`)}}
	cfg, err := catalog.NewNodeConfig(class)
	if err != nil {
		t.Fatal(err)
	}
	_, _, allocatable := catalog.NodeResources(gpu, cfg)
	check(t, "allocatable", allocatable, want{"pods": "40"})
	capacity, _, _ := catalog.NodeResources(x86, cfg)
	check(t, "capacity", capacity, want{"ephemeral-storage": "80Gi"})

	for field, value := range map[string]string{"evictionHard": `{"memory.available":"one"}`, "podsPerCore": `"many"`} {
		wrong := class.DeepCopy()
		wrong.Spec.Kubelet[field] = apiextensionsv1.JSON{Raw: []byte(value)}
		if _, err := catalog.NewNodeConfig(wrong); err == nil || !strings.Contains(err.Error(), "EC2NodeClass default") || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error = %v, want it to name the class and the field", field, err)
		}
	}
}
