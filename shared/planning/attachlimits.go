package planning

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// attachPrefix is the prefix of the resources that count attached volumes, one for each CSI driver.
// Kubernetes once reported such limits under these names.
const attachPrefix = corev1.ResourceAttachableVolumesPrefix + "csi-"

// AttachLimitResource returns the resource that counts the distinct volume claims of a CSI driver on a
// node. A node without this resource has no known limit. Only the planner uses it: no real node
// reports it, so a NodeClaim that requests it would never be initialized.
func AttachLimitResource(driver string) corev1.ResourceName {
	return corev1.ResourceName(attachPrefix + driver)
}

// IsAttachLimit reports whether the resource counts attached volumes.
func IsAttachLimit(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), attachPrefix)
}

// CountAttachments returns how much of the attach limits the volumes use: one for each distinct claim.
// All volumes must be of pods in one namespace.
func CountAttachments(volumes ...Volume) corev1.ResourceList {
	count, seen := map[string]int64{}, map[volumeKey]bool{}
	for _, v := range volumes {
		one := volumeKey{v.Driver, v.Claim}
		if v.Driver == "" || seen[one] {
			continue
		}
		seen[one] = v.Claim != ""
		count[v.Driver]++
	}
	if len(count) == 0 {
		return nil
	}
	out := make(corev1.ResourceList, len(count))
	for driver, n := range count {
		out[AttachLimitResource(driver)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return out
}

// volumeKey identifies a volume.
type volumeKey struct{ driver, claim string }
