package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// placeholders warns of each ${NAME} that nobody has filled in. What runs on the
// node, and what pods are started with, has dollars of its own and is left out.
func (l *linter) placeholders() {
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
	l.unfilled(fields, "")
}

func (l *linter) unfilled(value any, path string) {
	switch v := value.(type) {
	case string:
		if found := placeholder.FindString(v); found != "" {
			l.warn(path, "%s is still to be filled in", found)
		}
	case []any:
		for i, item := range v {
			l.unfilled(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path == "spec" && strings.EqualFold(key, "userData") {
				continue
			}
			if found := placeholder.FindString(key); found != "" {
				l.warn(join(path, key), "%s is still to be filled in", found)
			}
			l.unfilled(v[key], join(path, key))
		}
	}
}
