package manifest

import (
	"regexp"
	"strings"
)

// placeholder matches ${NAME}, as envsubst and shells expand it.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// otherPlaceholder matches placeholders that nothing expands: $CLUSTER_NAME, <cluster-name>, and masked text such as
// subnet-*****.
var otherPlaceholder = regexp.MustCompile(`\$[A-Z][A-Z0-9_]{2,}|<[A-Za-z][A-Za-z0-9 _.-]*>|[A-Za-z0-9-]*\*{3,}`)

// findPlaceholder returns the first placeholder in a text, or "".
func findPlaceholder(text string) string {
	if found := placeholder.FindString(text); found != "" {
		return found
	}
	return otherPlaceholder.FindString(text)
}

// expandPlaceholders replaces ${NAME} by its value. It keeps names without a value, and
// those whose value has line breaks, because these would change the line numbers.
func expandPlaceholders(text string, vars map[string]string) string {
	if len(vars) == 0 {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := vars[found[2:len(found)-1]]
		if !ok || strings.ContainsAny(value, "\r\n") {
			return found
		}
		return value
	})
}
