package karpenter_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func TestIsManaged(t *testing.T) {
	for _, test := range []struct {
		ref  *karpenter.NodeClassReference
		want bool
	}{
		{nil, true},
		{&karpenter.NodeClassReference{Name: "default"}, true},
		{&karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}, true},
		{&karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}, false},
		{&karpenter.NodeClassReference{Group: "example.com", Kind: "EC2NodeClass", Name: "default"}, false},
		{&karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "OtherNodeClass", Name: "default"}, false},
	} {
		pool := karpenter.NodePool{Spec: karpenter.NodePoolSpec{Template: karpenter.NodeClaimTemplate{Spec: karpenter.NodeClaimTemplateSpec{NodeClassRef: test.ref}}}}
		claim := karpenter.NodeClaim{Spec: karpenter.NodeClaimSpec{NodeClassRef: test.ref}}
		if pool.IsManaged() != test.want || claim.IsManaged() != test.want {
			t.Errorf("%+v: NodePool %t, NodeClaim %t, want %t", test.ref, pool.IsManaged(), claim.IsManaged(), test.want)
		}
	}
}
