package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/integration/lint/namedtests"
)

const introduction = `# Compatibility with Karpenter

This table lists what Karpenter %s with its AWS provider %s does, and whether Joist does the same with the same manifests: %d behaviours,
of which %d are the same, %d differ and %d are absent. [Differences from Karpenter](differences.md) is the short page for users.

- **same**: the same result, the same names and the same defaults. Implementations differ.
- **different**: Joist does something else; the note says what, and why.
- **absent**: Joist does not do it; the note says why, or what to use instead.

Karpenter's column links to the source files at these versions (core is kubernetes-sigs/karpenter, provider is aws/karpenter-provider-aws). The last column names the tests.
Karpenter's own specs of scheduling, provisioning, disruption and static NodePools run with Joist's planner, and those of 20 controllers of nodes, NodeClaims, NodePools, NodeOverlays, CapacityBuffers and pods with Joist's lifecycle ([results](../../integration/suites/karpenterspecs/README.md)).
The page is generated from [integration/lint/compatibility](../../integration/lint/compatibility); ` + "`make rules`" + ` fails when a listed test or source file does not exist.
`

// renderPage returns the page as Markdown.
func renderPage(areas []Area, sources []Source) []byte {
	count := map[string]int{}
	total := 0
	for _, area := range areas {
		for _, b := range area.Behaviours {
			count[b.Status]++
			total++
		}
	}
	versions := map[string]string{}
	for _, s := range sources {
		versions[s.Name] = s.Version
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, introduction, versions["core"], versions["provider"], total, count["same"], count["different"], count["absent"])
	for _, area := range areas {
		fmt.Fprintf(&out, "\n## %s\n\n| behaviour | Karpenter | Joist | tests |\n|---|---|---|---|\n", area.Title)
		for _, b := range area.Behaviours {
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", escapeCell(b.Text), linkHomes(b.Home), describeStatus(b), describeTests(b.Tests))
		}
	}
	writeLinks(&out, areas, sources)
	return out.Bytes()
}

// escapeCell escapes what would end a cell of a Markdown table.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func describeStatus(b Behaviour) string {
	switch {
	case b.Status == "same" && b.Note == "":
		return "same"
	case b.Status == "same":
		return "same. " + escapeCell(b.Note)
	default:
		return "**" + b.Status + "**: " + escapeCell(b.Note)
	}
}

// linkHomes lists sources of Karpenter as reference links, which writeLinks defines.
func linkHomes(list []string) string {
	var out []string
	for _, home := range list {
		if title, ok := strings.CutPrefix(home, "docs "); ok {
			out = append(out, title)
		} else {
			out = append(out, "["+home+"]")
		}
	}
	return escapeCell(strings.Join(out, ", "))
}

// writeLinks defines the reference links of all homes.
func writeLinks(out *bytes.Buffer, areas []Area, sources []Source) {
	links := map[string]string{}
	for _, area := range areas {
		for _, b := range area.Behaviours {
			for _, home := range b.Home {
				name, path, _ := strings.Cut(home, " ")
				for _, s := range sources {
					if s.Name == name {
						links[home] = s.URL + path
					}
				}
			}
		}
	}
	out.WriteString("\n")
	for _, home := range slices.Sorted(maps.Keys(links)) {
		fmt.Fprintf(out, "[%s]: %s\n", home, links[home])
	}
}

func describeTests(tests []string) string {
	if len(tests) == 0 {
		return "none"
	}
	return escapeCell(namedtests.List(tests))
}
