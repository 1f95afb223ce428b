package karpenter

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// Versions of the drift hashes. Only hashes of the same version are comparable, so a version must be raised whenever
// equal objects get another hash.
const (
	NodePoolHashVersion     = "v3"
	EC2NodeClassHashVersion = "v6"
)

// Hash returns the hash of the template's fields whose change causes drift: all but the requirements, which are
// compared directly.
func (p *NodePool) Hash() (string, error) {
	return hashFields(p.Spec.Template)
}

// Hash returns the hash of the spec's fields whose change causes drift. It contains the resolved image family, so
// that setting the family that an alias implies changes nothing. The kubelet's settings are hashed as JSON with sorted
// keys. caBundle is the cluster's certificate authority, base64, or "".
func (c *EC2NodeClass) Hash(caBundle string) (string, error) {
	family, err := c.AMIFamily()
	if err != nil {
		return "", err
	}
	kubelet, err := c.Spec.Kubelet.text()
	if err != nil {
		return "", fmt.Errorf("hashing the kubelet settings: %w", err)
	}
	return hashFields([]any{c.Spec, family, caBundle, string(kubelet)})
}

// hashFields hashes exported field names in their order and the names of struct types. It skips fields tagged
// hash:"ignore" and zero values, so a new optional field does not change existing hashes.
func hashFields(value any) (string, error) {
	sum, err := hashstructure.Hash(value, hashstructure.FormatV2, &hashstructure.HashOptions{
		SlicesAsSets:    true,
		IgnoreZeroValue: true,
		ZeroNil:         true,
	})
	if err != nil {
		return "", fmt.Errorf("hashing for drift: %w", err)
	}
	return strconv.FormatUint(sum, 10), nil
}
