package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// newMounts resolves volumes with the objects. Manifests seldom have StorageClasses; missing
// ones are assumed.
func (a *PlanResult) newMounts(objects []cluster.Object, demand Demand) podspec.Mounts {
	var volumes []*corev1.PersistentVolume
	var classes []*storagev1.StorageClass
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.PersistentVolume:
			volumes = append(volumes, o)
		case *storagev1.StorageClass:
			classes = append(classes, o)
		}
	}
	var claims []*corev1.PersistentVolumeClaim
	byName := func(x, y cluster.Key) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	}
	for _, key := range slices.SortedFunc(maps.Keys(demand.Claims), byName) {
		claims = append(claims, demand.Claims[key])
	}
	pods := slices.Concat(demand.Pending, boundPods(demand))
	classes = append(classes, a.assumeStorageClasses(claims, pods, classes)...)
	return podspec.NewMounts(pods, podspec.NewStorage(claims, volumes, classes))
}

// assumeStorageClasses creates the missing StorageClasses of claims without a volume: EBS
// volumes in the zone of the pod.
func (a *PlanResult) assumeStorageClasses(claims []*corev1.PersistentVolumeClaim, pods []*corev1.Pod, known []*storagev1.StorageClass) []*storagev1.StorageClass {
	var out []*storagev1.StorageClass
	for _, spec := range slices.Concat(unboundClaims(claims), ephemeralClaims(pods)) {
		fits := isDefault
		if spec.StorageClassName != nil {
			fits = func(c *storagev1.StorageClass) bool { return c.Name == *spec.StorageClassName }
		}
		if slices.ContainsFunc(known, fits) || slices.ContainsFunc(out, fits) {
			continue
		}
		class := &storagev1.StorageClass{Provisioner: catalog.EBSDriver, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}
		switch {
		case spec.StorageClassName == nil:
			class.Name, class.Annotations = "assumed", map[string]string{podspec.DefaultClassAnnotation: "true"}
			a.assume("no default StorageClass in the files: assuming one that creates EBS volumes in the zone of the pod")
		case *spec.StorageClassName == "":
			continue // It references an existing volume and no class.
		default:
			class.Name = *spec.StorageClassName
			a.assume("StorageClass %s is not in the files: assuming that it creates EBS volumes in the zone of the pod", class.Name)
		}
		out = append(out, class)
	}
	return out
}

func isDefault(c *storagev1.StorageClass) bool {
	return c.Annotations[podspec.DefaultClassAnnotation] == "true"
}

// unboundClaims returns the specs of claims without a volume.
func unboundClaims(claims []*corev1.PersistentVolumeClaim) (out []corev1.PersistentVolumeClaimSpec) {
	for _, claim := range claims {
		if claim.Spec.VolumeName == "" {
			out = append(out, claim.Spec)
		}
	}
	return out
}

// ephemeralClaims returns the specs of ephemeral volumes.
func ephemeralClaims(pods []*corev1.Pod) (out []corev1.PersistentVolumeClaimSpec) {
	for _, pod := range pods {
		for _, volume := range pod.Spec.Volumes {
			if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
				out = append(out, volume.Ephemeral.VolumeClaimTemplate.Spec)
			}
		}
	}
	return out
}
