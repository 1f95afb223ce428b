package launchspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// origin is where a NodeClaim comes from. Its annotations contain it, so that after a crash the
// NodeClaim alone is enough to continue.
type origin struct {
	outbox string
	seq    uint64
	intent Intent
	ref    event.Ref
}

// claimParts are the parts that all NodeClaims of an intent have in common. They must not be changed.
type claimParts struct {
	annotations  map[string]string
	ceiling      corev1.ResourceList
	requirements []karpenter.NodeSelectorRequirementWithMinValues
}

// share returns the common parts of the NodeClaims of an intent.
func (g *recipe) share(from origin) (claimParts, error) {
	out := claimParts{ceiling: ceiling(from.intent), requirements: g.requirements.NodeSelectorRequirements()}
	var err error
	if out.annotations, err = g.annotations(from, out.ceiling); err != nil {
		return out, fmt.Errorf("writing the annotations of its NodeClaims: %w", err)
	}
	return out, nil
}

// claim returns the NodeClaim with a name for a node of an intent.
func (g *recipe) claim(node *planning.PlannedNode, common claimParts, name string) planning.PlannedClaim {
	out := planning.PlannedClaim{Ceiling: common.ceiling, PricePerHour: g.choice.offers[0].PricePerHour, Pods: len(node.Pods)}
	annotations := maps.Clone(common.annotations)
	annotations[planning.ExpectedPodsAnnotation] = planning.FormatExpectedPods(node.Pods)
	if len(node.DeviceDrivers) > 0 {
		annotations[karpenter.DRADriversAnnotationKey] = strings.Join(node.DeviceDrivers, ",")
	}
	if node.MinValuesRelaxed {
		annotations[karpenter.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
	}
	spec := g.pool.Spec.Template.Spec
	labels := maps.Clone(g.labels)
	maps.Copy(labels, g.pool.Spec.Template.Labels)
	out.Object = karpenter.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: karpenter.SchemeGroupVersion.String(), Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: annotations,
			Finalizers: []string{karpenter.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpenter.SchemeGroupVersion.String(), Kind: "NodePool",
				Name: g.pool.Name, UID: g.pool.UID, BlockOwnerDeletion: new(true),
			}},
		},
		Spec: karpenter.NodeClaimSpec{
			Taints: spec.Taints, StartupTaints: spec.StartupTaints, NodeClassRef: spec.NodeClassRef,
			Requirements:           common.requirements,
			Resources:              karpenter.ResourceRequirements{Requests: node.Requests},
			TerminationGracePeriod: spec.TerminationGracePeriod, ExpireAfter: spec.ExpireAfter,
		},
	}
	if g.existing != nil {
		out.Object = addTo(g.existing, out.Object)
	}
	return out
}

// annotations returns the annotations that all NodeClaims of an intent have.
func (g *recipe) annotations(from origin, ceiling corev1.ResourceList) (map[string]string, error) {
	out := maps.Clone(g.pool.Spec.Template.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	poolHash, err := g.pool.Hash()
	if err != nil {
		return nil, err
	}
	classHash, err := g.class.Hash(g.cluster.CABundle)
	if err != nil {
		return nil, err
	}
	largest, err := json.Marshal(ceiling)
	if err != nil {
		return nil, fault.E("writing the ceiling", fault.Bug, err)
	}
	maps.Copy(out, map[string]string{
		karpenter.NodePoolHashAnnotationKey:            poolHash,
		karpenter.NodePoolHashVersionAnnotationKey:     karpenter.NodePoolHashVersion,
		karpenter.EC2NodeClassHashAnnotationKey:        classHash,
		karpenter.EC2NodeClassHashVersionAnnotationKey: karpenter.EC2NodeClassHashVersion,
		karpenter.InstanceProfileAnnotationKey:         from.intent.Templates[0].InstanceProfile,
		IntentTag:                                      from.intent.ID,
		IntentRefAnnotation:                            FormatRef(from.ref),
		BatchAnnotation:                                fmt.Sprintf("%s/%d", from.outbox, from.seq),
		ClaimsAnnotation:                               strconv.Itoa(len(from.intent.Claims)),
		CeilingAnnotation:                              string(largest),
	})
	return out, nil
}

// ceiling returns the largest amount of each resource over all types of the launch, the highest price,
// and one node.
func ceiling(intent Intent) corev1.ResourceList {
	out := corev1.ResourceList{karpenter.ResourceNodes: *resource.NewQuantity(1, resource.DecimalSI)}
	for _, facts := range intent.Types {
		for name, amount := range facts.Capacity {
			if was, ok := out[name]; !ok || was.Cmp(amount) < 0 {
				out[name] = amount
			}
		}
	}
	dearest := 0.0
	for _, price := range intent.Prices {
		dearest = max(dearest, price)
	}
	out[planning.PriceResource], _ = planning.PriceQuantity(dearest) // The planner ignores other prices.
	return out
}

// ReadCeiling returns the largest resources that the claim may get. It returns nil if the annotation cannot be parsed:
// the planner wrote it, and the plan's digest protects it from edits.
func ReadCeiling(claim *karpenter.NodeClaim) corev1.ResourceList {
	var out corev1.ResourceList
	if json.Unmarshal([]byte(claim.Annotations[CeilingAnnotation]), &out) != nil {
		return nil
	}
	return out
}
