package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	bufferv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1alpha1 "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// kind is one of Joist's types with upstream's type of the same name.
type kind struct {
	name         string
	ours, theirs func() any
}

func kinds() []kind {
	return []kind{
		{"NodePool", func() any { return &karpenter.NodePool{} }, func() any { return &karpv1.NodePool{} }},
		{"NodeClaim", func() any { return &karpenter.NodeClaim{} }, func() any { return &karpv1.NodeClaim{} }},
		{"EC2NodeClass", func() any { return &karpenter.EC2NodeClass{} }, func() any { return &awsv1.EC2NodeClass{} }},
		{"NodeOverlay", func() any { return &karpenter.NodeOverlay{} }, func() any { return &karpv1alpha1.NodeOverlay{} }},
		{"CapacityBuffer", func() any { return &karpenter.CapacityBuffer{} }, func() any { return &bufferv1beta1.CapacityBuffer{} }},
		{"NodePoolList", func() any { return &karpenter.NodePoolList{} }, func() any { return &karpv1.NodePoolList{} }},
		{"NodeClaimList", func() any { return &karpenter.NodeClaimList{} }, func() any { return &karpv1.NodeClaimList{} }},
		{"EC2NodeClassList", func() any { return &karpenter.EC2NodeClassList{} }, func() any { return &awsv1.EC2NodeClassList{} }},
		{"NodeOverlayList", func() any { return &karpenter.NodeOverlayList{} }, func() any { return &karpv1alpha1.NodeOverlayList{} }},
		{"CapacityBufferList", func() any { return &karpenter.CapacityBufferList{} }, func() any { return &bufferv1beta1.CapacityBufferList{} }},
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encoding %T: %v", value, err)
	}
	return text
}

// decode rejects fields that the type does not have.
func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("decoding into %T: %v\n%s", into, err, text)
	}
}

// difference compares two JSON texts as values; numbers are compared by their spelling.
func difference(one, two []byte) (string, error) {
	a, err := loose(one)
	if err != nil {
		return "", err
	}
	b, err := loose(two)
	if err != nil {
		return "", err
	}
	return cmp.Diff(a, b), nil
}

func loose(text []byte) (any, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", text, err)
	}
	return value, nil
}
