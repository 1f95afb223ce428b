package karpenter

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// RestrictedLabelDomains returns the label domains in which users may not define labels, including subdomains.
func RestrictedLabelDomains() []string { return []string{Group, AWSGroup} }

// LabelDomain returns the part of a label key before the slash, or "".
func LabelDomain(key string) string {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return domain
}

// IsRestrictedLabel reports whether pools and pods must not set the label because scheduling sets it. Well-known
// labels are allowed even in a restricted domain. A pool's own template must also not set karpenter.sh/nodepool: see
// ValidateTemplateLabel.
func IsRestrictedLabel(key string) bool {
	if IsWellKnownLabel(key) {
		return false
	}
	if key == corev1.LabelHostname {
		return true
	}
	domain := LabelDomain(key)
	for _, restricted := range RestrictedLabelDomains() {
		if domain == restricted || strings.HasSuffix(domain, "."+restricted) {
			return true
		}
	}
	return false
}

// ValidateTemplateLabel returns why a pool may not require or set the label, or nil.
func ValidateTemplateLabel(key string) error {
	if key == NodePoolLabelKey {
		return fmt.Errorf("label %s is set by Joist from the NodePool: remove it", key)
	}
	if IsRestrictedLabel(key) {
		return fmt.Errorf("label %s is restricted: use a well-known label, or one in a domain other than %s",
			key, strings.Join(RestrictedLabelDomains(), " and "))
	}
	return nil
}
