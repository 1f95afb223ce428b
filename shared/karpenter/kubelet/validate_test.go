package kubelet_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/kubelet"
)

// decodeSettings reads settings as YAML, the form in which users write them.
func decodeSettings(t testing.TB, text string) karpenter.KubeletConfiguration {
	t.Helper()
	var k karpenter.KubeletConfiguration
	if err := yaml.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// joinErrors returns errors as the condition has them.
func joinErrors(errs []error) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

const signals = "memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available"

func TestValidate(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{"nothing", `{}`, ""},
		{"fields that planning reads", `{maxPods: 110, podsPerCore: 10, kubeReserved: {cpu: 200m, memory: 100Mi}, systemReserved: {ephemeral-storage: 1Gi, pid: "1000"}, evictionHard: {memory.available: 5%}}`, ""},
		{"a field that only the kubelet knows", `{serializeImagePulls: false}`, ""},
		{"a nested subtree", `{logging: {format: json, flushFrequency: 5s, options: {json: {infoBufferSize: 100Mi, splitStream: true}}}}`, ""},
		{"a flush frequency in nanoseconds", `{logging: {flushFrequency: 5000000000}}`, ""},
		{"reserved memory, and swap", `{reservedMemory: [{numaNode: 0, limits: {memory: 1100Mi}}], memorySwap: {swapBehavior: LimitedSwap}}`, ""},
		{"a threshold as a quantity", `{evictionHard: {nodefs.available: 500Mi}}`, ""},
		{"a soft threshold with its grace period", `{evictionSoft: {memory.available: 10%}, evictionSoftGracePeriod: {memory.available: 1m}}`, ""},
		{"thresholds of images", `{imageGCHighThresholdPercent: 80, imageGCLowThresholdPercent: 60}`, ""},
		{"zeros", `{maxPods: 0, podsPerCore: 0, evictionMaxPodGracePeriod: 0}`, ""},
		{"expressions", `{maxPods: vcpus * 10, podsPerCore: 10, kubeReserved: {memory: memory_mib / 10}, systemReserved: {cpu: vcpus * 10}}`, ""},
		{"null", `{maxPods: null, evictionHard: null, podsPerCore: null}`, ""},

		{"an unknown field", `{notAKubeletField: true}`, `spec.kubelet: unknown field "notAKubeletField"`},
		{"a field with the wrong case", `{MaxPods: 5}`, `spec.kubelet: unknown field "MaxPods"`},
		{"an unknown nested field", `{logging: {bogus: true}}`, `spec.kubelet: unknown field "logging.bogus"`},
		{"an unknown field three levels deep", `{logging: {options: {json: {nope: x}}}}`, `spec.kubelet: unknown field "logging.options.json.nope"`},
		{"two unknown fields", `{b: 1, a: {c: 1}}`, `spec.kubelet: unknown field "a"; spec.kubelet: unknown field "b"`},
		{"text instead of a number", `{podsPerCore: ten}`, `spec.kubelet: json: cannot unmarshal string into Go struct field KubeletConfiguration.podsPerCore of type int32`},
		{"a fraction", `{podsPerCore: 1.5}`, `spec.kubelet: json: cannot unmarshal number 1.5 into Go struct field KubeletConfiguration.podsPerCore of type int32`},
		{"a number that is too large", `{maxPods: 3000000000}`, `spec.kubelet: json: cannot unmarshal number 3000000000 into Go struct field KubeletConfiguration.maxPods of type int32`},
		{"a nested value of the wrong type", `{logging: {format: 12345}}`, `spec.kubelet: json: cannot unmarshal number into Go struct field LoggingConfiguration.logging.format of type string`},
		{"a wrong type hides unknown fields", `{unknown: 1, cpuCFSQuota: "true"}`, `spec.kubelet: json: cannot unmarshal string into Go struct field KubeletConfiguration.cpuCFSQuota of type bool`},
		{"an invalid duration", `{syncFrequency: soon}`, `spec.kubelet: time: invalid duration "soon"`},

		{"negative numbers", `{maxPods: -1, podsPerCore: -1, evictionMaxPodGracePeriod: -1}`,
			"spec.kubelet.podsPerCore: -1 can't be negative; spec.kubelet.evictionMaxPodGracePeriod: -1 can't be negative; spec.kubelet.maxPods: -1 can't be negative"},
		{"percentages", `{imageGCHighThresholdPercent: 101, imageGCLowThresholdPercent: -1}`,
			"spec.kubelet.imageGCHighThresholdPercent: 101 must be between 0 and 100; spec.kubelet.imageGCLowThresholdPercent: -1 must be between 0 and 100"},
		{"equal percentages", `{imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 70}`,
			"spec.kubelet: imageGCHighThresholdPercent (70) must be greater than imageGCLowThresholdPercent (70)"},
		{"reserved resources", `{kubeReserved: {gpu: "1", cpu: "-1"}}`,
			`spec.kubelet.kubeReserved[cpu]: "-1" can't be a negative resource quantity; spec.kubelet.kubeReserved: "gpu" isn't a reservable resource, must be one of cpu, memory, ephemeral-storage, pid`},
		{"an unknown signal", `{evictionMinimumReclaim: {signal: 500Mi}}`, `spec.kubelet.evictionMinimumReclaim: "signal" isn't a valid eviction signal, must be one of ` + signals},
		{"a threshold that is neither", `{evictionHard: {memory.available: lots}}`, `spec.kubelet.evictionHard[memory.available]: "lots" must be a percentage or a resource quantity`},
		{"a percentage above 100", `{evictionHard: {memory.available: 101%}}`, `spec.kubelet.evictionHard[memory.available]: "101%" must be a percentage or a resource quantity`},
		{"a negative threshold", `{evictionHard: {memory.available: -1Mi}}`, `spec.kubelet.evictionHard[memory.available]: "-1Mi" can't be a negative resource quantity`},
		{"an invalid grace period", `{evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: 5x}}`, `spec.kubelet.evictionSoftGracePeriod[memory.available]: "5x" must be a duration`},
		{"a negative grace period", `{evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: -1m}}`, `spec.kubelet.evictionSoftGracePeriod[memory.available]: "-1m" can't be a negative duration`},
		{"soft thresholds without partners", `{evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {pid.available: 1m}}`,
			"spec.kubelet.evictionSoft[memory.available]: has no matching evictionSoftGracePeriod; spec.kubelet.evictionSoftGracePeriod[pid.available]: has no matching evictionSoft"},
		{"taints", `{registerWithTaints: [{key: a, effect: NoSchedule}]}`,
			"spec.kubelet.registerWithTaints: can't be set, Karpenter sets it from the NodeClaim's taints so the node registers unschedulable until it's ready"},
		{"errors of several kinds", `{unknown: 1, podsPerCore: -1, kubeReserved: {cpu: "-1"}, evictionHard: {pid.available: ""}}`,
			`spec.kubelet: unknown field "unknown"; spec.kubelet.evictionHard[pid.available]: "" must be a percentage or a resource quantity; ` +
				`spec.kubelet.kubeReserved[cpu]: "-1" can't be a negative resource quantity; spec.kubelet.podsPerCore: -1 can't be negative`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := joinErrors(kubelet.Validate(decodeSettings(t, tt.settings))); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestRepeatedFields checks fields that are repeated within a value. YAML does not allow them.
func TestRepeatedFields(t *testing.T) {
	var k karpenter.KubeletConfiguration
	if err := json.Unmarshal([]byte(`{"logging": {"verbosity": 1, "verbosity": 2}}`), &k); err != nil {
		t.Fatal(err)
	}
	if got := joinErrors(kubelet.Validate(k)); got != `spec.kubelet: duplicate field "logging.verbosity"` {
		t.Errorf("got %s", got)
	}
}

func TestCheckFamily(t *testing.T) {
	for _, tt := range []struct{ name, family, settings, want string }{
		{"no settings", karpenter.AMIFamilyBottlerocket, `{}`, ""},
		{"other fields on AL2023", karpenter.AMIFamilyAL2023, `{registryPullQPS: 10, clusterDNS: [10.0.0.10, 10.0.0.11]}`, ""},
		{"other fields on Custom", karpenter.AMIFamilyCustom, `{registryPullQPS: 10}`, ""},
		{"every field of bootstrap scripts", karpenter.AMIFamilyAL2, `{clusterDNS: [10.0.0.10], maxPods: vcpus, podsPerCore: 2, systemReserved: {}, kubeReserved: {}, evictionHard: {}, evictionSoft: {}, ` +
			`evictionSoftGracePeriod: {}, evictionMaxPodGracePeriod: 1, imageGCHighThresholdPercent: 2, imageGCLowThresholdPercent: 1, cpuCFSQuota: true}`, ""},
		{"other fields on Bottlerocket", karpenter.AMIFamilyBottlerocket, `{serializeImagePulls: false, registryPullQPS: 10, maxPods: 5}`,
			"spec.kubelet has fields not applied by the Bottlerocket AMI family that would be silently dropped: registryPullQPS, serializeImagePulls"},
		{"podsPerCore on Bottlerocket", karpenter.AMIFamilyBottlerocket, `{podsPerCore: 10}`,
			"spec.kubelet has fields not applied by the Bottlerocket AMI family that would be silently dropped: podsPerCore"},
		{"no podsPerCore on Bottlerocket", karpenter.AMIFamilyBottlerocket, `{podsPerCore: null}`, ""},
		{"podsPerCore on Windows", karpenter.AMIFamilyWindows2022, `{podsPerCore: 10}`, ""},
		{"two addresses and another field", karpenter.AMIFamilyWindows2022, `{clusterDNS: [10.0.0.10, 10.0.0.11], registryPullQPS: 10}`,
			"spec.kubelet has fields not applied by the Windows2022 AMI family that would be silently dropped: registryPullQPS; " +
				"spec.kubelet.clusterDNS: the Windows2022 AMI family doesn't accept multiple entries, only one, but 2 were set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := kubelet.CheckFamily(tt.family, decodeSettings(t, tt.settings))
			if got := joinErrors(errorList(err)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func errorList(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// TestValidSettingsAreReadable checks that planning can read all settings without errors.
func TestValidSettingsAreReadable(t *testing.T) {
	values := rapid.SampledFrom([]string{
		`1`, `-1`, `1.5`, `true`, `null`, `"10"`, `"5x"`, `"1m"`, `[]`, `["10.0.0.10"]`, `{}`, `{"cpu":1}`, `{"cpu":"1"}`, `{"memory.available":"5%"}`,
		`{"memory.available":"1m"}`, `{"memory.available":"5x"}`, `{"memory.available":null}`, `3000000000`, `"vcpus"`,
	})
	names := rapid.SampledFrom([]string{
		"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod",
		"evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota", "MaxPods",
	})
	rapid.Check(t, func(t *rapid.T) {
		k := karpenter.KubeletConfiguration{}
		for name, value := range rapid.MapOfN(names, values, 1, 4).Draw(t, "settings") {
			raw := k[name]
			raw.Raw = []byte(value)
			k[name] = raw
		}
		if _, err := k.Parse(); err != nil && len(kubelet.Validate(k)) == 0 {
			t.Fatalf("%v is valid, but %v", k, errors.Unwrap(err))
		}
	})
}
