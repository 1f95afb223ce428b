package planning

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// attachPrefix begins the resources that count volumes, one for each CSI driver.
// Kubernetes once reported such limits under these names.
const attachPrefix = corev1.ResourceAttachableVolumesPrefix + "csi-"

// AttachLimitResource is the resource of which each distinct volume claim of a CSI driver
// takes one from its node. A node that lacks it has no limit that
// anybody knows. It is for planning alone: no real node reports it, so a claim
// that asked for it would never be initialized.
func AttachLimitResource(driver string) corev1.ResourceName {
	return corev1.ResourceName(attachPrefix + driver)
}

// IsAttachLimit reports whether the resource counts volumes.
func IsAttachLimit(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), attachPrefix)
}

// CountAttachments is what the volumes of one namespace's pods take of the limits:
// one for each distinct claim.
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

// volumeKey tells volumes apart.
type volumeKey struct{ driver, claim string }
