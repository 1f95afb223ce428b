package convert

import (
	"strings"
)

// loggingKeys are the keys of Karpenter's ConfigMap for logs.
var loggingKeys = []string{"zap-logger-config", "loglevel.controller", "loglevel.webhook"}

// readSettings reads Karpenter's ConfigMaps, and the instance profile in values, before anything is converted.
func (c *converter) readSettings(o *object) {
	if o.kind != "ConfigMap" || o.apiVersion != "v1" {
		return
	}
	data := o.root.get("data")
	global := o.name() == "karpenter-global-settings" || data.entry("aws.clusterName") != nil
	if !global && !hasAny(data, loggingKeys...) {
		return
	}
	if profile := data.textAt("aws.defaultInstanceProfile"); profile != "" {
		c.profile = profile
	}
	o.settings = true
	if o.root == o.section.tree.root {
		o.section.kind = settingsSection
	}
}

// readProfiles reads the default instance profile in files of values.
func (c *converter) readProfiles() {
	for _, f := range c.files {
		for _, s := range f.sections {
			if s.kind != valuesSection || !s.isConvertible() {
				continue
			}
			for _, path := range []string{"aws.defaultInstanceProfile", "settings.aws.defaultInstanceProfile"} {
				if e := entryAt(s.tree.root, path); e != nil && e.value.text() != "" {
					c.profile = e.value.text()
				}
			}
		}
	}
}

// convertSettings replaces Karpenter's ConfigMaps by comments with values of Joist's chart.
func (c *converter) convertSettings() {
	c.eachObject(func(o *object) {
		if !o.settings {
			return
		}
		values := newMapping()
		for _, e := range o.root.get("data").entriesOrNone() {
			c.addSetting(o, values, e)
		}
		c.convertValues(values, func(severity RemarkSeverity, e *entry, path, text, remedy string) {
			if severity == Converted && strings.HasPrefix(text, "is now ") {
				return // The remark about the ConfigMap shows the values.
			}
			c.remarkEntry(o, severity, e, "data", path+" "+text, remedy)
		})
		clearPlaces(values)
		mergeValues(c.values, values)
		if o.section.kind == settingsSection {
			o.section.replaced = o.section.tree.aboveComment() + strings.Join(settingsComment(o, values), "\n") + "\n"
		} else if o.section.tree.root.removeItem(o.root) && !isJSON(o.section.tree.lines) {
			o.section.below = append(o.section.below, settingsComment(o, values)...)
		}
		c.remark(o, Converted, 0, 0, "", "the ConfigMap "+o.name()+" is now values of Joist's chart, in a comment; Karpenter does not read it since 0.33", "")
	})
}

func (n *node) entriesOrNone() []*entry {
	if n == nil || n.kind != mappingNode {
		return nil
	}
	return n.entries
}

// addSetting adds one key of a ConfigMap to the values.
func (c *converter) addSetting(o *object, values *node, e *entry) {
	switch {
	case e.key == "loglevel.controller":
		values.set("logLevel", newScalar(e.value.text()))
	case e.key == "loglevel.webhook":
		c.remarkEntry(o, Converted, e, "data", e.key+" removed: there is no webhook", "")
	case e.key == "zap-logger-config":
		c.addLogging(o, values, e)
	case strings.HasPrefix(e.key, "_"):
		c.remarkEntry(o, Converted, e, "data", e.key+" removed: it is an example", "")
	default:
		keys := strings.Split("settings."+e.key, ".")
		if in := values.mapping(keys[:len(keys)-1]...); in != nil {
			in.set(keys[len(keys)-1], newScalar(typedSetting(e.value.text()))).first = e.first
			in.entry(keys[len(keys)-1]).column = e.column
		}
	}
}

// typedSetting returns the value of a setting, which a ConfigMap has as text.
func typedSetting(text string) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	return text
}

// addLogging reads the level of zap's configuration, and names the rest.
func (c *converter) addLogging(o *object, values *node, e *entry) {
	var kept []string
	for text := range strings.Lines(e.value.text()) {
		if !strings.HasPrefix(strings.TrimSpace(text), "#") {
			kept = append(kept, text)
		}
	}
	value, err := decodeJSON(strings.Join(kept, ""))
	config, ok := value.(map[string]any)
	if err != nil || !ok {
		c.remarkEntry(o, Check, e, "data", "zap-logger-config cannot be read as JSON", "set logLevel of Joist's chart: debug, info, warn or error")
		return
	}
	if level, ok := config["level"].(string); ok && values.get("logLevel") == nil && o.root.get("data").textAt("loglevel.controller") == "" {
		values.set("logLevel", newScalar(level))
	}
	delete(config, "level")
	if len(config) > 0 {
		c.remarkEntry(o, Converted, e, "data", "zap-logger-config removed, except the level: Joist's logs are JSON on standard output ("+strings.Join(sortedKeys(config), ", ")+")", "")
	}
}

// clearPlaces removes the places of entries, so that they are printed as new ones.
func clearPlaces(n *node) {
	for _, e := range n.entries {
		e.first, e.head, e.last, e.column = 0, 0, 0, 0
		clearPlaces(e.value)
	}
}

// mergeValues adds values to others; the later ones win.
func mergeValues(into, from *node) {
	for _, e := range from.entries {
		if there := into.get(e.key); there != nil && there.kind == mappingNode && e.value.kind == mappingNode {
			mergeValues(there, e.value)
			continue
		}
		into.set(e.key, e.value.clone())
	}
}

// removeItem removes an item of a List, which may be inside another List; false if it has no such item.
func (n *node) removeItem(item *node) bool {
	items := n.get("items")
	if items == nil || items.kind != listNode {
		return false
	}
	for i, e := range items.entries {
		if e.value == item {
			items.entries, items.changed = append(items.entries[:i:i], items.entries[i+1:]...), true
			return true
		}
		if e.value.removeItem(item) {
			return true
		}
	}
	return false
}

// aboveComment returns the marker and the comments of a document that a comment replaces.
func (t *tree) aboveComment() string {
	var b strings.Builder
	if strings.HasPrefix(t.lines[0], "---") {
		b.WriteString("---\n")
	}
	for _, comment := range t.comments {
		b.WriteString(strings.TrimRight(comment.Text, " ") + "\n")
	}
	return b.String()
}

// settingsComment returns the lines of a comment with the values of a ConfigMap.
func settingsComment(o *object, values *node) []string {
	out := []string{"# Values of Joist's chart, from the ConfigMap " + o.name() + ":"}
	for _, l := range (&tree{offset: 2}).printEntries(values, 0) {
		out = append(out, "#   "+l.text)
	}
	return out
}
