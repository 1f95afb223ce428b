package repolint

import (
	"fmt"
	"os/exec"
	"strings"
)

// subjectMax is the maximum length of a subject that git's tools show completely.
const subjectMax = 72

// commitFormat separates commits and their parts by bytes that no message has.
const commitFormat = "--format=%h%x00%s%x00%b%x01"

// Base returns the revision at which the current work began: the merge base with
// origin/main or, without that branch, the 20th commit before HEAD. It is empty in a
// clone without that history.
func Base(root string) string {
	if out, err := git(root, "rev-parse", "--is-shallow-repository"); err != nil || out != "false" {
		return ""
	}
	if base, err := git(root, "merge-base", "origin/main", "HEAD"); err == nil {
		return base
	}
	base, err := git(root, "rev-parse", "--verify", "--quiet", "HEAD~20")
	if err != nil {
		return ""
	}
	return base
}

// Log returns the messages of the commits since a revision, for Commits.
func Log(root, base string) (string, error) {
	return git(root, "log", "--no-merges", commitFormat, base+"..HEAD")
}

// Commits finds commits whose subject is too long, and commits without a body.
func Commits(log string) []Finding {
	var found []Finding
	for commit := range strings.SplitSeq(log, "\x01") {
		parts := strings.SplitN(strings.TrimLeft(commit, "\n"), "\x00", 3)
		if len(parts) < 3 {
			continue
		}
		where := "commit " + parts[0]
		if n := len([]rune(parts[1])); n > subjectMax {
			found = append(found, Finding{where, 0, fmt.Sprintf("the subject has %d characters, more than %d: %s", n, subjectMax, parts[1])})
		}
		if strings.TrimSpace(parts[2]) == "" {
			found = append(found, Finding{where, 0, "has no body: write why, and the results of measurements: " + parts[1]})
		}
	}
	return found
}

// AddedLines returns the lines of the working tree that are not in a revision, as
// path:number.
func AddedLines(root, base string) (map[string]bool, error) {
	diff, err := git(root, "diff", "--no-color", "--no-ext-diff", "-U0", base, "--", ".")
	if err != nil {
		return nil, err
	}
	added, path, number := map[string]bool{}, "", 0
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+++ "):
			path = strings.TrimPrefix(line[4:], "b/")
		case strings.HasPrefix(line, "@@ "):
			if _, after, ok := strings.Cut(line, " +"); ok {
				_, _ = fmt.Sscanf(after, "%d", &number)
			}
		case strings.HasPrefix(line, "+"):
			added[fmt.Sprintf("%s:%d", path, number)] = true
			number++
		}
	}
	return added, nil
}

func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
