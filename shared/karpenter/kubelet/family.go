package kubelet

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// mappedFields are the fields that bootstrap writes for every family: those of karpenter.ParsedKubelet.
var mappedFields = listMappedFields()

func listMappedFields() []string {
	var names []string
	for field := range reflect.TypeFor[karpenter.ParsedKubelet]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// CheckFamily returns what nodes of an image family would not apply, or nil. Images of AL2023 apply
// every field, and Custom images receive no settings.
func CheckFamily(family string, k karpenter.KubeletConfiguration) error {
	if len(k) == 0 || family == karpenter.AMIFamilyAL2023 || family == karpenter.AMIFamilyCustom {
		return nil
	}
	var problems []string
	dropped := slices.DeleteFunc(slices.Sorted(maps.Keys(k)), func(name string) bool {
		if name == "podsPerCore" && family == karpenter.AMIFamilyBottlerocket {
			value, _ := decodeField[*int32](k, name)
			return value == nil
		}
		return slices.Contains(mappedFields, name)
	})
	if len(dropped) > 0 {
		problems = append(problems, fmt.Sprintf("spec.kubelet has fields not applied by the %s AMI family that would be silently dropped: %s",
			family, strings.Join(dropped, ", ")))
	}
	if addresses, _ := decodeField[[]string](k, "clusterDNS"); len(addresses) > 1 {
		problems = append(problems, fmt.Sprintf("spec.kubelet.clusterDNS: the %s AMI family doesn't accept multiple entries, only one, but %d were set",
			family, len(addresses)))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(problems, "; "))
}
