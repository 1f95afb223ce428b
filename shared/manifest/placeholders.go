package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// lintPlaceholders warns about each placeholder in Karpenter's resources. It skips user data and
// pods, in which ${NAME} may be intended.
func (l *linter) lintPlaceholders() {
	switch l.Object.(type) {
	case *karpenter.NodePool, *karpenter.EC2NodeClass, *karpenter.NodeClaim:
	default:
		return
	}
	encoded, err := json.Marshal(l.Object)
	if err != nil {
		return
	}
	var fields map[string]any
	if json.Unmarshal(encoded, &fields) != nil {
		return
	}
	l.findPlaceholders(fields, "")
}

func (l *linter) findPlaceholders(value any, path string) {
	switch v := value.(type) {
	case string:
		if found := findPlaceholder(v); found != "" {
			l.warn(path, "the placeholder %s is not filled in", found)
		}
	case []any:
		for i, item := range v {
			l.findPlaceholders(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path == "spec" && strings.EqualFold(key, "userData") {
				continue
			}
			if found := findPlaceholder(key); found != "" {
				l.warn(joinPath(path, key), "the placeholder %s is not filled in", found)
			}
			l.findPlaceholders(v[key], joinPath(path, key))
		}
	}
}
