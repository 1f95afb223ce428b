package convert

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// These are copies of the files of Joist's chart, which say how it reads the values of Karpenter's charts. A test
// of the chart compares them.
var (
	//go:embed eras.yaml
	erasText string
	//go:embed keys.yaml
	keysText string
)

// chartValues is what Joist's chart knows about values.
type chartValues struct {
	// moved maps old names to new ones. notes has what to do about values that the chart does not have, and
	// defaults their value in Karpenter's chart.
	moved, notes map[string]string
	defaults     map[string]any
	// keys has "leaf" for a value, and "inner" for a mapping of values.
	keys map[string]string
}

// movedFurther are values of Karpenter 0.16 and 0.17 that Joist's chart does not read under their old name.
var movedFurther = map[string]string{
	"controller.batchMaxDuration":  "settings.batchMaxDuration",
	"controller.batchIdleDuration": "settings.batchIdleDuration",
}

// keptValues are values that the chart uses for messages only.
var keptValues = []string{"settings.interruptionQueue", "settings.clusterEndpoint"}

var readChart = sync.OnceValue(func() chartValues {
	out := chartValues{moved: map[string]string{}, notes: map[string]string{}, defaults: map[string]any{}, keys: map[string]string{}}
	eras, problem := parseTree(erasText)
	keys, other := parseTree(keysText)
	if problem != nil || other != nil {
		return out // A test reads them.
	}
	for _, e := range eras.root.get("moved").entries {
		out.moved[e.key] = e.value.textAt("to")
	}
	maps.Copy(out.moved, movedFurther)
	for _, e := range eras.root.get("elsewhere").entries {
		out.notes[e.key] = e.value.textAt("note")
		if value := e.value.get("default"); value != nil {
			out.defaults[e.key] = value.plain()
		}
	}
	for _, e := range keys.root.entries {
		out.keys[e.key] = e.value.text()
	}
	return out
})

// isValues reports whether a document is a file of values for Karpenter's or Joist's chart.
func isValues(root *node) bool {
	if root.kind != mappingNode || hasAny(root, "apiVersion", "kind", "spec", "metadata") {
		return false
	}
	known := 0
	for _, e := range root.entries {
		if knownValue(e.key) {
			known++
		}
	}
	return known > 0 && 2*known >= len(root.entries) && hasAny(root, "settings", "controller", "serviceAccount", "clusterName", "clusterEndpoint", "aws", "webhook", "replicas", "logLevel", "serviceMonitor")
}

// knownValue reports whether the chart of any version has a value at the top level.
func knownValue(key string) bool {
	chart := readChart()
	return chart.keys[key] != "" || chart.notes[key] != "" || chart.moved[key] != ""
}

// reporter reports a remark about a value.
type reporter func(severity RemarkSeverity, e *entry, path, text, remedy string)

// convertValueFiles converts the files of values.
func (c *converter) convertValueFiles() {
	for _, f := range c.files {
		for _, s := range f.sections {
			if s.kind == valuesSection && s.isConvertible() {
				o := &object{root: s.tree.root, section: s}
				before := s.tree.root.isChanged()
				c.convertValues(s.tree.root, func(severity RemarkSeverity, e *entry, path, text, remedy string) {
					c.remarkEntry(o, severity, e, path, text, remedy)
				})
				c.repairMoved(s)
				if !before && s.tree.root.isChanged() || c.options.Lint {
					c.nameRequired(o)
				}
			}
		}
	}
}

// repairMoved repairs the indentation of values that could be repaired only after others were moved: a second
// conversion must change nothing.
func (c *converter) repairMoved(s *section) {
	if !s.tree.root.isChanged() || !c.lacksStructure(s.tree.root) {
		return
	}
	lines, ok := s.tree.print()
	if !ok {
		return
	}
	if repaired := c.repairSection(s, joinLines(lines)); repaired != nil {
		s.tree = repaired
	}
}

// convertValues writes values of Karpenter's charts as those of Joist's.
func (c *converter) convertValues(root *node, report reporter) {
	chart := readChart()
	removeImage(root, report)
	for _, path := range sortedKeys(chart.moved) {
		moveValue(root, path, chart.moved[path], report)
	}
	for _, path := range sortedKeys(chart.notes) {
		c.nameElsewhere(root, path, chart, report)
	}
	renameValueLabels(root, "", report)
	nameUnknown(root, "", chart.keys, report)
}

// entryAt returns the entry at a dotted path, or nil.
func entryAt(root *node, path string) *entry {
	keys := strings.Split(path, ".")
	in := root.get(keys[:len(keys)-1]...)
	return in.entry(keys[len(keys)-1])
}

// takeValue removes the entry at a dotted path, and the mappings that become empty.
func takeValue(root *node, path string) {
	keys := strings.Split(path, ".")
	in := root.get(keys[:len(keys)-1]...)
	in.take(keys[len(keys)-1])
	for i := len(keys) - 1; i > 0; i-- {
		parent := root.get(keys[:i-1]...)
		if inner := parent.get(keys[i-1]); len(inner.entries) == 0 {
			parent.take(keys[i-1])
		}
	}
}

// moveValue moves a value to its new name.
func moveValue(root *node, from, to string, report reporter) {
	e := entryAt(root, from)
	if e == nil {
		return
	}
	takeValue(root, from)
	if e.value.isNull() || e.value.text() == "" && e.value.kind == scalarNode {
		report(Converted, e, from, "removed: it is empty", "")
		return
	}
	if there := entryAt(root, to); there != nil && there.value.text() != "" {
		report(Check, e, from, "removed, because "+to+" is set", "check which of the two is right")
		return
	}
	keys := strings.Split(to, ".")
	in := root.mapping(keys[:len(keys)-1]...)
	if in == nil {
		report(Unrepaired, e, from, "cannot be moved to "+to+", whose parent is not a mapping", "correct it")
		return
	}
	in.take(keys[len(keys)-1])
	e.key = keys[len(keys)-1]
	in.add(e)
	report(Converted, e, from, "is now "+to, "")
}

// nameElsewhere removes a value that Joist's chart does not have, and says where it belongs.
func (c *converter) nameElsewhere(root *node, path string, chart chartValues, report reporter) {
	e := entryAt(root, path)
	if e == nil {
		return
	}
	empty := e.value.isNull() || e.value.kind == scalarNode && e.value.text() == "" || e.value.kind != scalarNode && len(e.value.entries) == 0
	usual, hasDefault := chart.defaults[path]
	isDefault := hasDefault && e.value.fingerprint() == fromJSON(usual).fingerprint()
	note := chart.notes[path]
	if strings.HasSuffix(path, "defaultInstanceProfile") && c.profileUsed {
		note, isDefault = "it is spec.instanceProfile of the EC2NodeClasses in the files", true
	}
	switch {
	case slices.Contains(keptValues, path):
		if c.options.Lint && !empty {
			report(Warning, e, path, note, "")
		}
		return
	case empty || isDefault:
		report(Converted, e, path, "removed: "+note, "")
	default:
		report(Check, e, path, "removed: "+note, "")
	}
	takeValue(root, path)
}

// removeImage removes Karpenter's own image.
func removeImage(root *node, report reporter) {
	for _, path := range []string{"controller.image", "webhook.image"} {
		e := entryAt(root, path)
		if e == nil {
			continue
		}
		if e.value.kind == scalarNode || strings.Contains(e.value.textAt("repository"), "karpenter/controller") {
			report(Converted, e, path, "removed: it is Karpenter's own image, and Joist has its own", "")
			takeValue(root, path)
		}
	}
}

// renameValueLabels renames labels in affinities and similar values.
func renameValueLabels(n *node, path string, report reporter) {
	for _, e := range n.entries {
		at := path
		if e.key != "" {
			at = manifest.JoinPath(path, e.key)
		}
		if now, old := renamedLabels[e.value.text()]; old && e.key == "key" {
			report(Converted, e, at, e.value.text()+" is now "+now, "")
			e.value = newScalar(now)
		}
		if now, old := renamedLabels[e.key]; old && n.kind == mappingNode && n.entry(now) == nil {
			report(Converted, e, at, e.key+" is now "+now, "")
			e.key = now
		}
		renameValueLabels(e.value, at, report)
	}
}

// nameUnknown names values that neither chart has.
func nameUnknown(n *node, path string, keys map[string]string, report reporter) {
	for _, e := range n.entries {
		at := strings.TrimPrefix(path+"."+e.key, ".")
		switch keys[at] {
		case "inner":
			if e.value.kind == mappingNode {
				nameUnknown(e.value, at, keys, report)
			}
		case "leaf":
		default:
			if path == "" && e.key == "global" {
				continue
			}
			remedy := "remove it, or correct its name"
			if near := manifest.NearestName(at, sortedKeys(keys)); near != "" {
				remedy = "did you mean " + near + "?"
			}
			report(Unrepaired, e, at, "unknown value", remedy)
		}
	}
}

var accountInARN = regexp.MustCompile(`arn:aws[a-z-]*:iam::[0-9]{12}:`)

// nameRequired names values that Joist's chart requires and Karpenter's does not.
func (c *converter) nameRequired(o *object) {
	settings := o.root.get("settings")
	text := o.root.fingerprint()
	if settings.textAt("clusterName") == "" {
		c.remark(o, Check, 0, 0, "settings.clusterName", "missing: Joist's chart requires it", "write the name of the EKS cluster")
	}
	if settings.textAt("region") == "" && settings.textAt("clusterEndpoint") == "" && !strings.Contains(text, `"AWS_REGION"`) {
		c.remark(o, Check, 0, 0, "settings.region", "missing: Joist's chart requires it", "write the region, such as eu-central-1")
	}
	if settings.textAt("accountID") == "" && !accountInARN.MatchString(text) {
		c.remark(o, Check, 0, 0, "settings.accountID", "missing: Joist's chart requires it, unless it follows from a role's ARN", "write the 12 digits of the AWS account in quotes")
	}
}
