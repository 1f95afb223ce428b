package repolint

import (
	"fmt"
	"regexp"
	"strings"
)

// machinePath finds absolute paths of one machine. It is assembled from parts so that it
// does not match this file.
var machinePath = regexp.MustCompile(`(^|[\s"'` + "`" + `(=:,])/(` + strings.Join([]string{"work", "root", "tmp/bash[^/]*"}, "|") + `)/`)

// MachinePaths finds paths that exist only on one machine.
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

// Promises finds notes of unfinished work without an issue.
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

// linesMax is the maximum length of a Go file.
const linesMax = 500

// LongFiles finds hand-written Go files that are too long. allowed has exceptions with
// their reason; an exception that is no longer needed is a finding too.
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
