package karpenter

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseProviderID(t *testing.T) {
	id, err := ParseProviderID("aws:///us-east-1a/i-0123456789abcdef0")
	if err != nil {
		t.Fatal(err)
	}
	if id != (ProviderID{Zone: "us-east-1a", InstanceID: "i-0123456789abcdef0"}) {
		t.Errorf("read %+v", id)
	}
	for _, text := range []string{
		"", "i-0123", "aws://us-east-1a/i-0123", "aws:///i-0123", "aws:////i-0123", "aws:///us-east-1a/", "aws:///us-east-1a/i-",
		"aws:///us-east-1a/i-1/2", "aws:///us-east-1a/fargate-ip-10-0-0-1", "gce://project/zone/name", "eks-hybrid:///r/c/mi-1",
	} {
		if got, err := ParseProviderID(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestProviderIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ProviderID{
			Zone:       rapid.StringMatching(`[a-z]{2}-[a-z]{4,9}-[1-9][a-f]`).Draw(t, "zone"),
			InstanceID: rapid.StringMatching(`i-[0-9a-f]{8,17}`).Draw(t, "instance"),
		}
		got, err := ParseProviderID(id.String())
		if err != nil || got != id {
			t.Fatalf("%+v became %+v (%v)", id, got, err)
		}
	})
}

func TestInstanceNamesTheClaim(t *testing.T) {
	claim := &NodeClaim{}
	claim.Name = "default-x7k2p"
	if _, err := claim.Instance(); err == nil || !strings.Contains(err.Error(), claim.Name) {
		t.Errorf("an unlaunched claim gave %v", err)
	}
	claim.Status.ProviderID = "aws:///us-east-1a/i-0123"
	if id, err := claim.Instance(); err != nil || id.InstanceID != "i-0123" {
		t.Errorf("instance %+v (%v)", id, err)
	}
}
