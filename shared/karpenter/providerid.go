package karpenter

import (
	"fmt"
	"strings"
)

const providerIDPrefix = "aws:///"

// ProviderID is an EC2 instance in the format of a Node's spec.providerID: aws:///zone/i-0123.
type ProviderID struct {
	Zone       string // availability zone name, for example us-east-1a
	InstanceID string // for example i-0123456789abcdef0
}

// ParseProviderID parses a provider id. Ids of other clouds, Fargate and hybrid nodes are errors.
func ParseProviderID(text string) (ProviderID, error) {
	rest, found := strings.CutPrefix(text, providerIDPrefix)
	zone, instance, both := strings.Cut(rest, "/")
	if !found || !both || zone == "" || len(instance) <= len("i-") || !strings.HasPrefix(instance, "i-") || strings.Contains(instance, "/") {
		return ProviderID{}, fmt.Errorf("invalid provider ID %q of an EC2 instance (want aws:///zone/i-…)", text)
	}
	return ProviderID{Zone: zone, InstanceID: instance}, nil
}

// String returns the id in Kubernetes' format.
func (p ProviderID) String() string { return providerIDPrefix + p.Zone + "/" + p.InstanceID }

// Instance returns the claim's instance, or an error if it has not been launched.
func (c *NodeClaim) Instance() (ProviderID, error) {
	id, err := ParseProviderID(c.Status.ProviderID)
	if err != nil {
		return ProviderID{}, fmt.Errorf("finding the instance of NodeClaim %s: %w", c.Name, err)
	}
	return id, nil
}
