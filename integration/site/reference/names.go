package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// folders have the constants with names that users see. Later ones use constants of earlier ones.
var folders = []string{"shared/karpenter", "shared/planning", "shared/launchspec", "services/lifecycle"}

// set are the annotations that users write.
var set = []string{
	"karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-repair", "karpenter.sh/disruption-cost", "karpenter.sh/reboot-termination-grace-period",
	"karpenter.k8s.aws/nvidia-consumable-capacity", "joist.sh/approve",
}

const namesHead = `# Annotations, labels, conditions and Events

<!-- Written by go generate ./site/reference. -->

The names below ` + "`karpenter.sh`" + ` and ` + "`karpenter.k8s.aws`" + ` mean what they mean in Karpenter. The names below ` + "`joist.sh`" + ` are Joist's own.
`

// section is a table of names.
type section struct {
	title, about string
	// has reports whether a constant is in the table.
	has func(constant) bool
}

var sections = []section{
	{"Annotations of a NodePool that you write", "[What Joist adds](nodepool.md#what-joist-adds) explains them, with examples.", func(c constant) bool {
		return c.group == "Annotations of a NodePool.\n"
	}},
	{"Other annotations that you write", "", func(c constant) bool { return isAnnotation(c) && slices.Contains(set, c.value) }},
	{"Annotations that Joist writes", "Do not change them: Joist continues its work from them after a restart. EC2 instances have some of them as tags.", func(c constant) bool {
		return isAnnotation(c) && !slices.Contains(set, c.value)
	}},
	{"Labels", "Of NodeClaims and nodes. Pods and NodePools may require those of instances, zones and capacity types.", func(c constant) bool {
		return strings.HasPrefix(c.group, "Labels of ")
	}},
	{"Taints", "", func(c constant) bool { return strings.HasSuffix(c.name, "TaintKey") }},
	{"Finalizers", "", func(c constant) bool { return strings.HasSuffix(c.name, "Finalizer") }},
	{"Conditions of a NodePool", "[Reasons, and what to do](nodepool.md#status).", ofCondition("a NodePool")},
	{"Conditions of a NodeClaim", "", ofCondition("a NodeClaim")},
	{"Conditions of an EC2NodeClass", "[Reasons, and what to do](nodeclass.md).", ofCondition("an EC2NodeClass")},
	{"Conditions of several kinds", "", ofCondition("several kinds")},
}

func ofCondition(kind string) func(constant) bool {
	return func(c constant) bool {
		return strings.HasPrefix(c.name, "ConditionType") && strings.HasPrefix(c.group, "Condition types of "+kind)
	}
}

func isAnnotation(c constant) bool {
	// Other domains are Kubernetes', and lower-case names are not for other packages.
	if !strings.Contains(c.value, "karpenter.") && !strings.HasPrefix(c.value, "joist.sh/") || !ast.IsExported(c.name) {
		return false
	}
	return strings.HasSuffix(c.name, "Annotation") || strings.HasSuffix(c.name, "AnnotationKey") || c.name == "IntentTag"
}

// renderNames returns the page of names.
func renderNames() ([]byte, error) {
	all, known, err := readConstants(folders)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	page.WriteString(namesHead)
	for _, s := range sections {
		if err := appendNames(&page, s, all, known); err != nil {
			return nil, err
		}
	}
	reasons, err := readReasons(known)
	if err != nil {
		return nil, err
	}
	appendReasons(&page, reasons)
	return page.Bytes(), nil
}

func appendNames(page *bytes.Buffer, s section, all []constant, known map[string]string) error {
	var rows []string
	for _, c := range all {
		if !s.has(c) {
			continue
		}
		about := describe(c, known)
		row := fmt.Sprintf("| `%s` | %s |\n", c.value, about)
		if about == "" {
			return fmt.Errorf("the constant %s (%s) has no comment, and the reference needs one", c.name, c.value)
		}
		// A constant may be an alias of another.
		if !slices.ContainsFunc(rows, func(other string) bool { return strings.HasPrefix(other, "| `"+c.value+"` |") }) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("no constant is in the section %q", s.title)
	}
	slices.Sort(rows)
	fmt.Fprintf(page, "\n## %s\n\n", s.title)
	if s.about != "" {
		fmt.Fprintf(page, "%s\n\n", s.about)
	}
	fmt.Fprintf(page, "| name | meaning |\n|---|---|\n%s", strings.Join(rows, ""))
	return nil
}
