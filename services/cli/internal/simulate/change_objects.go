package simulate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// applyPool sets a NodePool in the snapshot. An existing NodePool keeps its status; a new one is
// ready.
func (a *changeBuilder) applyPool(next *karpenter.NodePool) error {
	next = next.DeepCopy()
	ref := next.Spec.Template.Spec.NodeClassRef
	if ref == nil || classIndex(&a.Snapshot, ref.Name) < 0 {
		return fault.F(changingPools, fault.Missing, "NodePool %s refers to an EC2NodeClass that neither the file nor the snapshot or scenario has", next.Name).
			WithHint("add the EC2NodeClass to the file, or correct spec.template.spec.nodeClassRef")
	}
	at := poolIndex(&a.Snapshot, next.Name)
	if at < 0 {
		next.Status.Conditions = next.Status.Conditions.With(a.assumedReady(), a.before.TakenAt)
		a.Snapshot.NodePools = append(a.Snapshot.NodePools, *next)
		a.recordChange(cluster.NodePools, next.Name, Created)
		return nil
	}
	was := &a.Snapshot.NodePools[at]
	change := Changed
	if equality.Semantic.DeepEqual(was.Spec, next.Spec) && equality.Semantic.DeepEqual(joistAnnotations(was.Annotations), joistAnnotations(next.Annotations)) {
		change = Unchanged
	}
	a.recordChange(cluster.NodePools, next.Name, change)
	next.UID, next.Status = was.UID, was.Status
	a.Snapshot.NodePools[at] = *next
	return nil
}

// joistAnnotations returns the annotations that change a decision.
func joistAnnotations(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, "joist.sh/") {
			out[key] = value
		}
	}
	return out
}

func (a *changeBuilder) assumedReady() metav1.Condition {
	return metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Assumed"}
}

// applyClass sets an EC2NodeClass in the snapshot. Its status is the one in the file, else the
// current one.
func (a *changeBuilder) applyClass(next *karpenter.EC2NodeClass) error {
	next = next.DeepCopy()
	at := classIndex(&a.Snapshot, next.Name)
	said := len(next.Status.Subnets) > 0 && len(next.Status.AMIs) > 0
	if at >= 0 {
		was := &a.Snapshot.NodeClasses[at]
		change := Changed
		if equality.Semantic.DeepEqual(was.Spec, next.Spec) && !said {
			change = Unchanged
		}
		a.recordChange(cluster.NodeClasses, next.Name, change)
		next.UID = was.UID
		if !said {
			a.assumeResolved(was, next)
			next.Status = was.Status
		}
		a.setReady(next)
		a.Snapshot.NodeClasses[at] = *next
		return nil
	}
	if !said {
		if len(a.before.NodeClasses) == 0 {
			return fault.F(changingPools, fault.Missing, "the status of EC2NodeClass %s is unknown", next.Name).
				WithHint("write subnets, amis, securityGroups and instanceProfile into its status in the file")
		}
		next.Status = *a.before.NodeClasses[0].Status.DeepCopy()
		a.assume("EC2NodeClass %s resolves to the subnets, security groups and images of EC2NodeClass %s", next.Name, a.before.NodeClasses[0].Name)
	}
	a.setReady(next)
	a.recordChange(cluster.NodeClasses, next.Name, Created)
	a.Snapshot.NodeClasses = append(a.Snapshot.NodeClasses, *next)
	return nil
}

// setReady makes a class ready if its status has no condition.
func (a *changeBuilder) setReady(class *karpenter.EC2NodeClass) {
	if _, said := class.Status.Conditions.Get(karpenter.ConditionTypeReady); !said {
		class.Status.Conditions = class.Status.Conditions.With(a.assumedReady(), a.before.TakenAt)
	}
}

// assumeResolved lists the fields that the class may resolve to other values.
func (a *changeBuilder) assumeResolved(was, next *karpenter.EC2NodeClass) {
	var open []string
	for _, one := range []struct {
		field     string
		was, next any
	}{
		{"subnetSelectorTerms", was.Spec.SubnetSelectorTerms, next.Spec.SubnetSelectorTerms},
		{"securityGroupSelectorTerms", was.Spec.SecurityGroupSelectorTerms, next.Spec.SecurityGroupSelectorTerms},
		{"amiSelectorTerms", was.Spec.AMISelectorTerms, next.Spec.AMISelectorTerms},
		{"capacityReservationSelectorTerms", was.Spec.CapacityReservationSelectorTerms, next.Spec.CapacityReservationSelectorTerms},
	} {
		if !equality.Semantic.DeepEqual(one.was, one.next) {
			open = append(open, one.field)
		}
	}
	if slices.Sort(open); len(open) > 0 {
		a.assume("the changed %s of EC2NodeClass %s resolve as before; write the result into its status in the file to simulate a difference",
			strings.Join(open, ", "), next.Name)
	}
}
