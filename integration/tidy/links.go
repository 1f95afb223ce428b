package tidy

import (
	"path"
	"regexp"
	"strings"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	runbookName  = regexp.MustCompile(`\bdeploy/docs/[A-Za-z0-9._/-]*[A-Za-z0-9]\.md\b`)
)

// DeadLinks finds links between the repository's files that lead nowhere: in
// Markdown every relative link, and in every other file the names of operator
// documents, which is how an alarm names its runbook.
func DeadLinks(files []File) []Finding {
	exists := map[string]bool{".": true}
	for _, file := range files {
		for at := file.Path; at != "."; at = path.Dir(at) {
			exists[at] = true
		}
	}
	var found []Finding
	for _, file := range files {
		if file.isData() || file.isTest() {
			continue
		}
		file.lines(func(number int, line string) {
			for _, target := range targets(file, line) {
				if !exists[target] {
					found = append(found, Finding{file.Path, number, "leads to " + target + ", which does not exist"})
				}
			}
		})
	}
	return found
}

// targets lists the files of the repository that a line refers to.
func targets(file File, line string) []string {
	if !strings.HasSuffix(file.Path, ".md") {
		return runbookName.FindAllString(line, -1)
	}
	var all []string
	for _, link := range markdownLink.FindAllStringSubmatch(line, -1) {
		target, _, _ := strings.Cut(link[1], "#")
		if target == "" || strings.Contains(target, ":") {
			continue // a heading of this page, or another site
		}
		if rooted, ok := strings.CutPrefix(target, "/"); ok {
			all = append(all, path.Clean(rooted))
		} else {
			all = append(all, path.Join(path.Dir(file.Path), target))
		}
	}
	return all
}
