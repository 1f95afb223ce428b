package nodeclaim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// reserved puts the claim, and its node if there is one, into the reservation cr-1.
func reserved(v *nodeclaim.View) {
	maps := []map[string]string{v.Claim.Labels}
	if v.Node != nil {
		maps = append(maps, v.Node.Labels)
	}
	for _, labels := range maps {
		labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeReserved
		labels[karpenter.LabelCapacityReservationID] = "cr-1"
		labels[karpenter.LabelCapacityReservationType] = "default"
		labels[karpenter.LabelCapacityReservationInterruptible] = "false"
	}
}

func demoted(v *nodeclaim.View) { v.Claim = nodeclaim.WithOnDemandLabels(v.Claim) }

// After the end of a reservation, claim and node are labelled as on-demand.
func TestEndedReservationIsRelabelled(t *testing.T) {
	run(t, []row{
		{"reserved", view(initialized, reserved), nil},
		{"demoted, node not relabelled yet", view(initialized, reserved, demoted), []string{"update n"}},
		{"demoted before registration", view(launched, reserved, demoted), nil},
		{"never reserved", view(initialized), nil},
		{"labelled as reserved by a user", view(initialized, func(v *nodeclaim.View) {
			v.Node.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeReserved
		}), nil},
	})
	v := view(initialized, reserved)
	kept := v.Claim.DeepCopy()
	after := nodeclaim.WithOnDemandLabels(v.Claim)
	if diff := cmp.Diff(kept, v.Claim); diff != "" {
		t.Errorf("the claim of the cache was changed:\n%s", diff)
	}
	v.Claim = after
	node := object[*corev1.Node](t, v)
	for name, labels := range map[string]map[string]string{"claim": after.Labels, "node": node.Labels} {
		for key := range labels {
			if len(key) > len(karpenter.AWSGroup) && key[:len(karpenter.AWSGroup)] == karpenter.AWSGroup {
				t.Errorf("the %s still has the label %s", name, key)
			}
		}
		if labels[karpenter.CapacityTypeLabelKey] != "on-demand" {
			t.Errorf("the capacity type of the %s is %s", name, labels[karpenter.CapacityTypeLabelKey])
		}
	}
}

// Nodes of a capacity block are removed 40 min before its end.
func TestCapacityBlocks(t *testing.T) {
	ends := func(in time.Duration) *metav1.Time { at := metav1.NewTime(noon.Add(in)); return &at }
	block := karpenter.CapacityReservationTypeCapacityBlock
	for _, test := range []struct {
		name string
		r    karpenter.CapacityReservation
		want bool
	}{
		{"the block does not end soon", karpenter.CapacityReservation{ID: "cr-1", ReservationType: block, EndTime: ends(40*time.Minute + time.Second)}, false},
		{"the block ends soon", karpenter.CapacityReservation{ID: "cr-1", ReservationType: block, EndTime: ends(40 * time.Minute)}, true},
		{"the block is in state expiring", karpenter.CapacityReservation{ID: "cr-1", ReservationType: block, State: karpenter.CapacityReservationStateExpiring}, true},
		{"another block ends soon", karpenter.CapacityReservation{ID: "cr-2", ReservationType: block, EndTime: ends(0)}, false},
		{"an ordinary reservation ends", karpenter.CapacityReservation{ID: "cr-1", ReservationType: "default", EndTime: ends(0)}, false},
		{"the block has no end", karpenter.CapacityReservation{ID: "cr-1", ReservationType: block}, false},
	} {
		class := &karpenter.EC2NodeClass{}
		class.Status.CapacityReservations = []karpenter.CapacityReservation{test.r}
		c := view(initialized, reserved).Claim
		if got := nodeclaim.IsExpiring(c, class, noon); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
	if nodeclaim.IsExpiring(view(initialized, reserved).Claim, nil, noon) || nodeclaim.IsExpiring(view(initialized).Claim, &karpenter.EC2NodeClass{}, noon) {
		t.Error("a claim without a class or a reservation expires")
	}
	ending := func(v *nodeclaim.View) { v.Expiring = true }
	run(t, []row{
		{"the block ends while the node runs", view(initialized, ending), []string{"delete c claim-uid: its capacity block ends"}},
		{"the block ends before registration", view(launched, ending), []string{"delete c claim-uid: its capacity block ends"}},
	})
}
