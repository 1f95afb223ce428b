package manifest

import (
	"regexp"
	"strings"
)

// placeholder is what envsubst and the shell fill in.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand fills in the names that have a value. A value with line breaks would
// move what is below it, so such names stay as they are.
func expand(text string, vars map[string]string) string {
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
