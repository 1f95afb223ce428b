package karpenter

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for object, want := range map[runtime.Object]string{
		&NodePool{}:           "karpenter.sh/v1, Kind=NodePool",
		&NodePoolList{}:       "karpenter.sh/v1, Kind=NodePoolList",
		&NodeClaim{}:          "karpenter.sh/v1, Kind=NodeClaim",
		&NodeClaimList{}:      "karpenter.sh/v1, Kind=NodeClaimList",
		&EC2NodeClass{}:       "karpenter.k8s.aws/v1, Kind=EC2NodeClass",
		&EC2NodeClassList{}:   "karpenter.k8s.aws/v1, Kind=EC2NodeClassList",
		&NodeOverlay{}:        "karpenter.sh/v1alpha1, Kind=NodeOverlay",
		&NodeOverlayList{}:    "karpenter.sh/v1alpha1, Kind=NodeOverlayList",
		&CapacityBuffer{}:     "autoscaling.x-k8s.io/v1beta1, Kind=CapacityBuffer",
		&CapacityBufferList{}: "autoscaling.x-k8s.io/v1beta1, Kind=CapacityBufferList",
	} {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil || len(kinds) != 1 || kinds[0].String() != want {
			t.Errorf("%T is registered as %v (%v), want %s", object, kinds, err, want)
		}
	}
}

// A deep copy shares no memory, including the text of a duration.
func TestDeepCopySharesNothing(t *testing.T) {
	pool := loadPool(t)
	twin := pool.DeepCopy()
	twin.Spec.Template.Labels["team"] = "other"
	*twin.Spec.Template.Spec.ExpireAfter.Duration = 0
	twin.Spec.Template.Spec.ExpireAfter.Raw[1] = '9'
	*twin.Spec.Template.Spec.Requirements[1].MinValues = 1
	if before := loadPool(t); pool.Spec.Template.Labels["team"] != "web" ||
		*pool.Spec.Template.Spec.ExpireAfter.Duration != *before.Spec.Template.Spec.ExpireAfter.Duration ||
		pool.Spec.Template.Spec.ExpireAfter.String() != "720h" ||
		*pool.Spec.Template.Spec.Requirements[1].MinValues != 5 {
		t.Errorf("changing the copy changed the original: %+v", pool.Spec.Template)
	}
}
