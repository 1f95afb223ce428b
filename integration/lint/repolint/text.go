package repolint

import (
	"fmt"
	"regexp"
	"strings"
)

// machinePath finds absolute paths of one machine. It is put together from
// parts so that this file does not find itself.
var machinePath = regexp.MustCompile(`(^|[\s"'` + "`" + `(=:,])/(` + strings.Join([]string{"work", "root", "tmp/bash[^/]*"}, "|") + `)/`)

// MachinePaths finds paths that exist on one machine only: whoever clones the
// repository cannot follow them.
func MachinePaths(files []File) []Finding {
	var found []Finding
	for _, file := range files {
		file.lines(func(number int, line string) {
			if at := machinePath.FindString(line); at != "" {
				found = append(found, Finding{file.Path, number, fmt.Sprintf("names a path of one machine (%s…): write it relative to the repository", strings.TrimSpace(at))})
			}
		})
	}
	return found
}

var (
	promise = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	issue   = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\(#\d+\)`)
)

// Promises finds notes of unfinished work that name no issue: such a note is
// read by nobody who could act on it.
func Promises(files []File) []Finding {
	var found []Finding
	for _, file := range files {
		if file.isData() || !file.isGo() && !strings.HasSuffix(file.Path, ".sh") && !strings.HasPrefix(file.Path, ".ci/") {
			continue
		}
		file.lines(func(number int, line string) {
			if promise.MatchString(line) && !issue.MatchString(line) {
				found = append(found, Finding{file.Path, number, "notes unfinished work without an issue: write it as " + "TO" + "DO(#123)"})
			}
		})
	}
	return found
}

// linesMax is where a Go file has outgrown its idea.
const linesMax = 500

// LongFiles finds hand-written Go files that should be split by idea. The allowed
// ones map to the reason why they may be long; an entry that is no longer needed
// is a finding too, so that the list can only shrink.
func LongFiles(files []File, allowed map[string]string) []Finding {
	var found []Finding
	used := map[string]bool{}
	for _, file := range files {
		count := strings.Count(file.Text, "\n")
		if !file.isGo() || file.isData() || file.isGenerated() || count <= linesMax {
			continue
		}
		if used[file.Path] = true; allowed[file.Path] == "" {
			found = append(found, Finding{file.Path, 0, fmt.Sprintf("%d lines, more than %d: split it by idea", count, linesMax)})
		}
	}
	for path := range allowed {
		if !used[path] {
			found = append(found, Finding{path, 0, "is on the list of long files without need: take it off"})
		}
	}
	return found
}
