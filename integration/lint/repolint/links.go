package repolint

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	runbookName  = regexp.MustCompile(`\bdeploy/docs/[A-Za-z0-9._/-]*[A-Za-z0-9]\.md\b`)
)

// DeadLinks finds links to missing files of the repository: in Markdown every relative
// link, in other files the paths of operator documents, such as an alarm's runbook.
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

// DeadAnchors finds links to missing headings, with GitHub's anchors
// (https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#section-links).
// Other files have lines instead of headings, and no page links to them.
func DeadAnchors(files []File) []Finding {
	anchors := map[string]map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file.Path, ".md") {
			anchors[file.Path] = headings(file)
		}
	}
	var found []Finding
	for _, file := range files {
		if !strings.HasSuffix(file.Path, ".md") || file.isData() {
			continue
		}
		file.lines(func(number int, line string) {
			for _, link := range markdownLink.FindAllStringSubmatch(line, -1) {
				target, anchor, ok := strings.Cut(link[1], "#")
				if !ok || strings.Contains(target, ":") {
					continue
				}
				page := file.Path
				if target != "" {
					page = path.Join(path.Dir(file.Path), target)
				}
				if !anchors[page][anchor] {
					found = append(found, Finding{file.Path, number, "leads to " + link[1] + ", and " + page + " has no such heading"})
				}
			}
		})
	}
	return found
}

var (
	heading     = regexp.MustCompile(`^#{1,6} +(.+?) *$`)
	decoration  = regexp.MustCompile("[`*]|\\[([^]]*)\\]\\([^)]*\\)")
	noAnchor    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	fencedBlock = "```"
)

// headings returns the anchors of a page's headings.
func headings(file File) map[string]bool {
	all, fenced := map[string]bool{}, false
	file.lines(func(_ int, line string) {
		if strings.HasPrefix(strings.TrimSpace(line), fencedBlock) {
			fenced = !fenced
		}
		found := heading.FindStringSubmatch(line)
		if fenced || found == nil {
			return
		}
		plain := strings.ToLower(decoration.ReplaceAllString(found[1], "$1"))
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(plain, ""), " ", "-")
		anchor := name
		for n := 1; all[anchor]; n++ {
			anchor = name + "-" + strconv.Itoa(n)
		}
		all[anchor] = true
	})
	return all
}

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	writtenTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
)

// LostTests finds tests that a page names and that do not exist.
func LostTests(files []File) []Finding {
	written := map[string]bool{}
	for _, file := range files {
		if !file.isTest() {
			continue
		}
		for _, name := range writtenTest.FindAllStringSubmatch(file.Text, -1) {
			written[name[1]] = true
		}
	}
	var found []Finding
	for _, file := range files {
		if !strings.HasSuffix(file.Path, ".md") || file.isData() {
			continue
		}
		file.lines(func(number int, line string) {
			for _, name := range namedTest.FindAllStringSubmatch(line, -1) {
				if !written[name[1]] {
					found = append(found, Finding{file.Path, number, "names the test " + name[1] + ", which does not exist"})
				}
			}
		})
	}
	return found
}

var namedFunction = regexp.MustCompile("\\[`([A-Za-z_]\\w*)`\\]\\(([^)\\s#]+\\.go)\\)")

// LostFunctions finds functions that a page links to by name, as [`Solve`](solve.go), and
// that the file does not declare.
func LostFunctions(files []File) []Finding {
	text := map[string]string{}
	for _, file := range files {
		if file.isGo() {
			text[file.Path] = file.Text
		}
	}
	var found []Finding
	for _, file := range files {
		if !strings.HasSuffix(file.Path, ".md") || file.isData() {
			continue
		}
		file.lines(func(number int, line string) {
			for _, link := range namedFunction.FindAllStringSubmatch(line, -1) {
				target := path.Join(path.Dir(file.Path), link[2])
				declared := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + link[1] + `[(\[]`)
				if !declared.MatchString(text[target]) {
					found = append(found, Finding{file.Path, number, "names the function " + link[1] + ", which " + target + " does not declare"})
				}
			}
		})
	}
	return found
}

// targets returns the files of the repository that a line refers to.
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
