package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Rules between the sections of both files.
var (
	rule     = strings.Repeat("=", 80) + "\n"
	thinRule = strings.Repeat("-", 80) + "\n"
)

const licensesHead = `Licences of the software of other projects in Joist's binaries

Joist is licensed under the Apache License 2.0 (LICENSE). Its binaries contain the Go modules
below, unmodified. The source code of a module is at https://pkg.go.dev/<module>; the SBOM of
each artifact lists the versions. integration/lint/licenses writes this file.

`

const noticeHead = `Joist
Copyright 2026 The Joist Authors

THIRD_PARTY_LICENSES lists the software of other projects in Joist's binaries, with its licences.

The definitions of NodePool, NodeClaim, NodeOverlay, EC2NodeClass and CapacityBuffer are those of
Karpenter (https://github.com/kubernetes-sigs/karpenter and https://github.com/aws/karpenter-provider-aws)
and of the Kubernetes autoscaler (https://github.com/kubernetes/autoscaler), under the Apache License 2.0.

The embedded catalogue of instance types contains facts from https://github.com/LeanerCloud/ec2-instances-info
(MIT, copyright (c) 2013 Garret Heaton), and under the Apache License 2.0 from
https://github.com/aws/amazon-vpc-resource-controller-k8s, https://github.com/aws/karpenter-provider-aws
and https://github.com/kubernetes-sigs/aws-ebs-csi-driver.

The notices of modules in the binaries follow. integration/lint/licenses writes this file.

`

// renderLicenses lists the modules with their licences, then each different text once.
func renderLicenses(modules []*module) string {
	var b strings.Builder
	b.WriteString(licensesHead)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, m := range modules {
		ids := map[string]bool{}
		for _, text := range m.Licenses {
			for _, id := range identifyLicenses(text) {
				ids[id] = true
			}
		}
		line := m.Path + "\t" + strings.Join(slices.Sorted(maps.Keys(ids)), ", ")
		if e, ok := allowedModules[m.Path]; ok {
			line += " (" + e.Reason + ")"
		}
		fmt.Fprintln(table, line)
	}
	table.Flush()
	for _, t := range distinctTexts(modules, func(m *module) map[string]string { return m.Licenses }) {
		b.WriteString("\n" + rule + strings.Join(identifyLicenses(t.Text), ", ") + "\n")
		for _, file := range t.Files {
			b.WriteString("  " + file + "\n")
		}
		b.WriteString(thinRule + "\n" + t.Text)
	}
	return b.String()
}

// renderNotice returns Joist's own notice and those of the modules, which the Apache License
// requires in section 4 (d).
func renderNotice(modules []*module) string {
	var b strings.Builder
	b.WriteString(noticeHead)
	for _, t := range distinctTexts(modules, func(m *module) map[string]string { return m.Notices }) {
		b.WriteString(rule)
		for _, file := range t.Files {
			b.WriteString(file + "\n")
		}
		b.WriteString(thinRule + t.Text + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// sharedText is a text and the files that contain it.
type sharedText struct {
	Text  string
	Files []string
}

// distinctTexts returns each text once, in the order of their licences and first files.
// Texts that differ only in white space are equal.
func distinctTexts(modules []*module, texts func(*module) map[string]string) []*sharedText {
	byWords := map[string]*sharedText{}
	for _, m := range modules {
		for _, path := range slices.Sorted(maps.Keys(texts(m))) {
			text := texts(m)[path]
			words := strings.Join(strings.Fields(text), " ")
			t := byWords[words]
			if t == nil {
				t = &sharedText{Text: cleanText(text)}
				byWords[words] = t
			}
			t.Files = append(t.Files, m.Path+"/"+path)
		}
	}
	return slices.SortedFunc(maps.Values(byWords), func(a, b *sharedText) int {
		return cmp.Or(slices.Compare(identifyLicenses(a.Text), identifyLicenses(b.Text)), strings.Compare(a.Files[0], b.Files[0]))
	})
}

// cleanText removes white space at the end of lines and of the text.
func cleanText(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
