package karpenter

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// RestrictedLabelDomains lists the label domains that users may not make labels of their own in; subdomains count.
func RestrictedLabelDomains() []string { return []string{Group, AWSGroup} }

// LabelDomain is what stands before the slash of a label key, or nothing.
func LabelDomain(key string) string {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return domain
}

// IsRestrictedLabel reports whether scheduling keeps the label for itself, so that pools and pods must not set it.
// Well-known labels are free to use even in a restricted domain. A pool's own template additionally may not name
// karpenter.sh/nodepool: see ValidateTemplateLabel.
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

// ValidateTemplateLabel says why a pool may not constrain or set the label, or nil.
func ValidateTemplateLabel(key string) error {
	if key == NodePoolLabelKey {
		return fmt.Errorf("label %s is set by the pool itself: leave it out", key)
	}
	if IsRestrictedLabel(key) {
		return fmt.Errorf("label %s would disturb scheduling: use a well-known label, or one in a domain other than %s",
			key, strings.Join(RestrictedLabelDomains(), " and "))
	}
	return nil
}
