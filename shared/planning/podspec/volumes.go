package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// bindCompleted is on a claim that is completely bound to a volume.
const bindCompleted = "pv.kubernetes.io/bind-completed"

// Volumes returns what the volume claims of a pod require of its node, one entry for each claim in the
// order of the pod's volumes. Other volumes require nothing.
func Volumes(pod *corev1.Pod, in *Storage) []planning.Volume {
	var out []planning.Volume
	for i := range pod.Spec.Volumes {
		name, template := claimed(pod, &pod.Spec.Volumes[i])
		if name == "" || slices.ContainsFunc(out, func(v planning.Volume) bool { return v.Claim == name }) {
			continue
		}
		claim := in.claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
		if claim == nil {
			claim = template
		}
		volume := in.resolveClaim(claim)
		volume.Claim = name
		out = append(out, volume)
	}
	return out
}

// claimed returns the name of a volume's claim. The claim of an ephemeral volume may not exist yet;
// then template has its spec.
func claimed(pod *corev1.Pod, volume *corev1.Volume) (name string, template *corev1.PersistentVolumeClaim) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName, nil
	case volume.Ephemeral != nil:
		if from := volume.Ephemeral.VolumeClaimTemplate; from != nil {
			template = &corev1.PersistentVolumeClaim{ObjectMeta: from.ObjectMeta, Spec: from.Spec}
		}
		return pod.Name + "-" + volume.Name, template
	}
	return "", nil
}

// resolveClaim returns what a claim requires of a node, or why no node could ever mount it. A claim that
// is being deleted has a driver, because its volume stays attached while a pod uses it.
func (s *Storage) resolveClaim(claim *corev1.PersistentVolumeClaim) planning.Volume {
	switch {
	case claim == nil:
		return problem("it does not exist")
	case claim.DeletionTimestamp != nil:
		deleted := problem("it is being deleted")
		if claim.Spec.VolumeName != "" {
			deleted.Driver = s.resolveBound(claim).Driver
		}
		return deleted
	case claim.Status.Phase == corev1.ClaimLost:
		return problem("its volume is lost")
	case claim.Spec.VolumeName != "":
		return s.resolveBound(claim)
	default:
		return s.resolveUnbound(claim)
	}
}

func problem(format string, args ...any) planning.Volume {
	return planning.Volume{Problem: fmt.Sprintf(format, args...)}
}

// resolveBound handles a claim that has a volume.
func (s *Storage) resolveBound(claim *corev1.PersistentVolumeClaim) planning.Volume {
	name := claim.Spec.VolumeName
	if _, done := claim.Annotations[bindCompleted]; !done {
		return problem("its binding to volume %s is not complete", name)
	}
	volume := s.volumes[name]
	if volume == nil {
		return problem("its volume %s does not exist", name)
	}
	out, zones := planning.Volume{Driver: driverOf(volume)}, zoneRequirements(volume)
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		if len(zones) > 0 {
			out.Alternatives = []corev1.NodeSelectorTerm{{MatchExpressions: zones}}
		}
		return out
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		if empty(term) {
			continue // It matches no node.
		}
		if volume.Spec.Local != nil || volume.Spec.HostPath != nil {
			// The host is gone or is being removed, so its name is ignored.
			term.MatchExpressions = slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(r corev1.NodeSelectorRequirement) bool {
				return r.Key == corev1.LabelHostname
			})
		}
		term.MatchExpressions = append(slices.Clip(term.MatchExpressions), zones...)
		if empty(term) {
			return planning.Volume{Driver: out.Driver} // Any node matches.
		}
		out.Alternatives = append(out.Alternatives, term)
	}
	if len(out.Alternatives) == 0 {
		return problem("the node affinity of its volume %s matches no node", name)
	}
	return out
}

// zoneRequirements returns what the zone and region labels of a volume require of a node. A label may
// list several values with "__" between them; kube-scheduler ignores one with an empty value
// (kube-scheduler: pkg/scheduler/framework/plugins/volumezone).
func zoneRequirements(volume *corev1.PersistentVolume) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for _, key := range []string{corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		label, has := volume.Labels[key]
		if !has {
			continue
		}
		values := strings.Split(label, "__")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if !slices.Contains(values, "") {
			slices.Sort(values)
			out = append(out, corev1.NodeSelectorRequirement{
				Key: karpenter.NormalizeLabel(key), Operator: corev1.NodeSelectorOpIn, Values: slices.Compact(values),
			})
		}
	}
	return out
}

func empty(term corev1.NodeSelectorTerm) bool {
	return len(term.MatchExpressions)+len(term.MatchFields) == 0
}

// resolveUnbound handles a claim whose volume is created where its pod is placed.
func (s *Storage) resolveUnbound(claim *corev1.PersistentVolumeClaim) planning.Volume {
	class, name := s.classOf(claim)
	switch {
	case name == "":
		return problem("it is not bound, and has no StorageClass to provision a volume")
	case class == nil:
		return problem("its StorageClass %s does not exist", name)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return problem("it is not bound yet, and its StorageClass %s has volumeBindingMode Immediate, so its volume is not provisioned for this pod", name)
	}
	out := planning.Volume{Driver: migrated(class.Provisioner)}
	for _, allowed := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, r := range allowed.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: r.Key, Operator: corev1.NodeSelectorOpIn, Values: r.Values,
			})
		}
		if !empty(term) {
			out.Alternatives = append(out.Alternatives, term)
		}
	}
	if len(class.AllowedTopologies) > 0 && len(out.Alternatives) == 0 {
		return problem("the allowedTopologies of its StorageClass %s match no node", name)
	}
	return out
}

// driverOf returns the CSI driver that attaches a volume; empty for volumes that are not attached.
func driverOf(volume *corev1.PersistentVolume) string {
	switch {
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.Driver
	case volume.Spec.AWSElasticBlockStore != nil:
		return catalog.EBSDriver
	}
	return ""
}

// migrated returns the CSI driver that replaces a provisioner. Of the in-tree provisioners only EBS
// has one here.
func migrated(provisioner string) string {
	switch {
	case provisioner == "kubernetes.io/aws-ebs":
		return catalog.EBSDriver
	case strings.HasPrefix(provisioner, "kubernetes.io/"):
		return ""
	}
	return provisioner
}
