// Package repolint reads the repository as text and says what is untidy in it.
//
// Each check is a function from files to findings, so that its test can feed it
// a file that is wrong and see that it bites. What is checked: no path of one
// particular machine, no promise of work without an issue, no private code, no Go file that
// has outgrown its idea, a package doc for each package, links that lead somewhere, tests
// and functions that exist where a page names them, and a card for each service. Three
// habits are held as well: the number of marker words and of type names with several
// meanings may only fall, and commits have a short subject and a body.
package repolint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// File is one text file of the repository.
type File struct {
	Path string // relative to the repository's root, with slashes
	Text string
}

// Finding is one thing to mend.
type Finding struct {
	Path string
	Line int // 0 when the finding is about the whole file
	What string
}

// String is the finding as editors like it: path:line: what.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.What)
}

// sizeMax bounds a text file: larger ones are data, compared by other tests.
const sizeMax = 1 << 20

// Files reads every text file that git tracks or would track.
func Files(root string) ([]File, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the repository's files: %w (try: run the test in a git clone)", err)
	}
	var files []File
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case os.IsNotExist(err): // deleted, and not yet committed so
			continue
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", name, err)
		case len(text) > sizeMax || bytes.IndexByte(text, 0) >= 0:
			continue
		}
		files = append(files, File{Path: filepath.ToSlash(name), Text: string(text)})
	}
	return files, nil
}

// lines calls yield for each line of a file, counted from 1.
func (f File) lines(yield func(number int, line string)) {
	number := 0
	for line := range strings.SplitSeq(f.Text, "\n") {
		number++
		yield(number, line)
	}
}

func (f File) isGo() bool   { return strings.HasSuffix(f.Path, ".go") }
func (f File) isTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// isData tells whether a file is material for a test, kept byte for byte.
func (f File) isData() bool { return strings.Contains("/"+f.Path, "/testdata/") }

// isGenerated follows the go command's convention.
func (f File) isGenerated() bool {
	for line := range strings.SplitSeq(f.Text, "\n") {
		if strings.HasPrefix(line, "// Code generated ") && strings.HasSuffix(strings.TrimRight(line, "\r"), " DO NOT EDIT.") {
			return true
		}
		if strings.HasPrefix(line, "package ") {
			return false
		}
	}
	return false
}
