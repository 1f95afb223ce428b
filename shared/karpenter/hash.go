package karpenter

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// Versions of the drift hashes. A hash says something beside another of the same version only, so a version goes up whenever
// equal objects would begin to hash differently.
const (
	NodePoolHashVersion     = "v3"
	EC2NodeClassHashVersion = "v5"
)

// Hash of the parts of the template whose change makes nodes drift: all but the requirements, which are compared live.
func (p *NodePool) Hash() (string, error) {
	return hashFields(p.Spec.Template)
}

// Hash of the parts of the spec whose change makes nodes drift. The image family is hashed as it resolves,
// so that spelling out what an alias implies changes nothing. caBundle is the cluster's certificate authority, base64, or "".
func (c *EC2NodeClass) Hash(caBundle string) (string, error) {
	family, err := c.AMIFamily()
	if err != nil {
		return "", err
	}
	return hashFields([]any{c.Spec, family, caBundle})
}

// hashFields reads exported field names in their order and the names of struct types; fields tagged hash:"ignore" and zero values
// are left out, so a new optional field changes no old hash.
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
