package karpenter

import (
	"fmt"
	"strings"
)

// Families of machine images.
const (
	AMIFamilyAL2          = "AL2"
	AMIFamilyAL2023       = "AL2023"
	AMIFamilyBottlerocket = "Bottlerocket"
	AMIFamilyCustom       = "Custom"
	AMIFamilyWindows2019  = "Windows2019"
	AMIFamilyWindows2022  = "Windows2022"
	AMIFamilyWindows2025  = "Windows2025"
)

// Values of the label node.kubernetes.io/windows-build.
const (
	Windows2019Build = "10.0.17763"
	Windows2022Build = "10.0.20348"
	Windows2025Build = "10.0.26100"
)

// AliasVersionLatest is the version of an alias that follows AWS's releases.
const AliasVersionLatest = "latest"

// Alias is an EKS image by family and version, written al2023@v20240625.
type Alias struct {
	Family  string // one of the AMIFamily constants, never Custom
	Version string
}

// ParseAlias parses family@version.
func ParseAlias(text string) (Alias, error) {
	name, version, found := strings.Cut(text, "@")
	if !found || version == "" || strings.Contains(version, "@") {
		return Alias{}, fmt.Errorf("invalid image alias %q (use family@version, for example al2023@latest)", text)
	}
	for _, family := range aliasFamilies() {
		if strings.ToLower(family) == name {
			return Alias{Family: family, Version: version}, nil
		}
	}
	return Alias{}, fmt.Errorf("unknown family in image alias %q (use one of %s)", text, strings.ToLower(strings.Join(aliasFamilies(), ", ")))
}

// String returns the alias in the user's format.
func (a Alias) String() string { return strings.ToLower(a.Family) + "@" + a.Version }

// Alias returns the alias among the class's image selectors; ok reports whether there is one.
func (c *EC2NodeClass) Alias() (alias Alias, ok bool, err error) {
	for _, term := range c.Spec.AMISelectorTerms {
		if term.Alias != "" {
			alias, err = ParseAlias(term.Alias)
			return alias, err == nil, err
		}
	}
	return Alias{}, false, nil
}

// AMIFamily returns the class's family: the configured one, else that of its alias, else Custom, which the schema
// rules out.
func (c *EC2NodeClass) AMIFamily() (string, error) {
	if c.Spec.AMIFamily != nil {
		return *c.Spec.AMIFamily, nil
	}
	alias, ok, err := c.Alias()
	if err != nil {
		return "", fmt.Errorf("finding the image family of EC2NodeClass %s: %w", c.Name, err)
	}
	if ok {
		return alias.Family, nil
	}
	return AMIFamilyCustom, nil
}

func aliasFamilies() []string {
	return []string{
		AMIFamilyAL2, AMIFamilyAL2023, AMIFamilyBottlerocket,
		AMIFamilyWindows2019, AMIFamilyWindows2022, AMIFamilyWindows2025,
	}
}
