package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// docs is the folder whose pages are the site.
const docs = "deploy/docs"

var (
	link  = regexp.MustCompile(`\]\(([^)\s#:]+)(#[^)\s]*)?\)`)
	runBy = regexp.MustCompile(`^<!-- run-by: (.+) -->$`)
)

// writer rewrites pages of the repository as pages of the site.
type writer struct {
	// repository is its address.
	repository string
	// pages has the page of the site for each file of the repository that is a page.
	pages map[string]string
	// isFolder has the files and folders of the repository.
	isFolder map[string]bool
	// tests has the file of each test.
	tests map[string]string
}

// rewrite returns a page of the site. source is its file in the repository.
func (w writer) rewrite(source, text string) (string, error) {
	lines, fenced := indentItems(strings.Split(text, "\n")), false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if comment := runBy.FindStringSubmatch(line); comment != nil {
			named, err := w.nameTests(comment[1])
			if err != nil {
				return "", fmt.Errorf("%s:%d: %w", source, i+1, err)
			}
			lines[i] = named
			continue
		}
		lines[i] = link.ReplaceAllStringFunc(line, func(found string) string {
			parts := link.FindStringSubmatch(found)
			return "](" + w.resolve(source, parts[1]) + parts[2] + ")"
		})
	}
	return strings.Join(lines, "\n"), nil
}

var item = regexp.MustCompile(`^(?:[0-9]+\.|[-*]) +`)

// itemIndent is the indentation that Python-Markdown requires inside of a list item. GitHub requires the width of the marker.
const itemIndent = "    "

// indentItems indents the lines of list items as the generator requires, and ends a block inside of an item with an empty line.
func indentItems(lines []string) []string {
	var indented []string
	width, blocks := 0, false // the width of the item's marker, 0 outside of a list, and whether the item has blocks
	for _, line := range lines {
		marker := item.FindString(line)
		switch content := strings.TrimPrefix(line, strings.Repeat(" ", width)); {
		case marker != "":
			if blocks {
				indented = append(indented, "")
			}
			width, blocks = len(marker), false
		case width == 0 || line == "":
		case content == line:
			width, blocks = 0, false
		default:
			line = itemIndent + content
			blocks = blocks || indented[len(indented)-1] == ""
		}
		indented = append(indented, line)
	}
	return indented
}

// resolve returns the target of a link as the site has it. A target that does not exist stays, and the generator reports it.
func (w writer) resolve(source, target string) string {
	file := path.Join(path.Dir(source), target)
	from := w.pages[source]
	for _, candidate := range []string{file, path.Join(file, "README.md")} {
		if page, ok := w.pages[candidate]; ok {
			return relative(path.Dir(from), page)
		}
	}
	isFolder, exists := w.isFolder[file]
	if !exists {
		return target
	}
	if strings.HasPrefix(file, docs+"/") && !isFolder {
		return relative(path.Dir(from), strings.TrimPrefix(file, docs+"/"))
	}
	return w.onGitHub(file)
}

func (w writer) onGitHub(file string) string {
	kind := "blob"
	if w.isFolder[file] {
		kind = "tree"
	}
	return w.repository + "/" + kind + "/main/" + file
}

// nameTests returns the line that names the tests of a command.
func (w writer) nameTests(names string) (string, error) {
	var linked []string
	for name := range strings.SplitSeq(names, ", ") {
		file, ok := w.tests[name]
		if !ok {
			return "", fmt.Errorf("the comment run-by names %s, and no test has this name", name)
		}
		linked = append(linked, fmt.Sprintf("[`%s`](%s)", name, w.onGitHub(file)))
	}
	return "*Run by " + strings.Join(linked, " and ") + "*\n{: .run-by }\n", nil
}

// relative returns a path of the site as seen from one of its folders.
func relative(folder, target string) string {
	if folder == "." {
		return target
	}
	from, to := strings.Split(folder, "/"), strings.Split(target, "/")
	for len(from) > 0 && len(to) > 1 && from[0] == to[0] {
		from, to = from[1:], to[1:]
	}
	return strings.Repeat("../", len(from)) + strings.Join(to, "/")
}
