package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// DefaultClassAnnotation is "true" on the default StorageClass.
const DefaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// Storage indexes the objects behind the volume claims of pods.
type Storage struct {
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
	// standard is the default StorageClass, or nil.
	standard *storagev1.StorageClass
}

// NewStorage indexes the objects. It does not change them.
func NewStorage(claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, classes []*storagev1.StorageClass) *Storage {
	s := &Storage{
		claims:  make(map[types.NamespacedName]*corev1.PersistentVolumeClaim, len(claims)),
		volumes: make(map[string]*corev1.PersistentVolume, len(volumes)),
		classes: make(map[string]*storagev1.StorageClass, len(classes)),
	}
	for _, claim := range claims {
		s.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, volume := range volumes {
		s.volumes[volume.Name] = volume
	}
	for _, class := range classes {
		s.classes[class.Name] = class
		if class.Annotations[DefaultClassAnnotation] == "true" && preferred(class, s.standard) {
			s.standard = class
		}
	}
	return s
}

// SetClaim sets the claim with a name, or removes it if claim is nil.
func (s *Storage) SetClaim(name types.NamespacedName, claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		delete(s.claims, name)
	} else {
		s.claims[name] = claim
	}
}

// SetVolume sets a volume, or removes it if volume is nil.
func (s *Storage) SetVolume(name string, volume *corev1.PersistentVolume) {
	if volume == nil {
		delete(s.volumes, name)
	} else {
		s.volumes[name] = volume
	}
}

// allowsOnePod reports whether only one pod at a time may use a claim.
func (s *Storage) allowsOnePod(claim cluster.Key) bool {
	known := s.claims[types.NamespacedName(claim)]
	return known != nil && slices.Contains(known.Spec.AccessModes, corev1.ReadWriteOncePod)
}

// ClaimOf returns the claim of a volume; empty if unknown.
func (s *Storage) ClaimOf(volume string) types.NamespacedName {
	if known := s.volumes[volume]; known != nil && known.Spec.ClaimRef != nil {
		return types.NamespacedName{Namespace: known.Spec.ClaimRef.Namespace, Name: known.Spec.ClaimRef.Name}
	}
	return types.NamespacedName{}
}

// preferred is Kubernetes' choice among several default classes: the newest, and of equally old ones
// the first by name.
func preferred(class, over *storagev1.StorageClass) bool {
	switch {
	case over == nil:
		return true
	case !class.CreationTimestamp.Equal(&over.CreationTimestamp):
		return over.CreationTimestamp.Before(&class.CreationTimestamp)
	default:
		return class.Name < over.Name
	}
}

// classOf returns the class of a claim and its name; the name is empty if the claim has no class.
func (s *Storage) classOf(claim *corev1.PersistentVolumeClaim) (class *storagev1.StorageClass, name string) {
	name = claim.Annotations[corev1.BetaStorageClassAnnotation]
	switch {
	case name != "":
	case claim.Spec.StorageClassName != nil:
		name = *claim.Spec.StorageClassName
	case s.standard != nil:
		return s.standard, s.standard.Name
	}
	return s.classes[name], name
}

// AttachLimits returns how many volumes of each driver a node can attach, as its drivers report.
func AttachLimits(node *storagev1.CSINode) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, driver := range node.Spec.Drivers {
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			out[planning.AttachLimitResource(driver.Name)] = *resource.NewQuantity(int64(*driver.Allocatable.Count), resource.DecimalSI)
		}
	}
	return out
}
