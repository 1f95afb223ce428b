// Package repolint checks the repository's text files.
//
// Each check is a function from files to findings, so that its test can pass it a file
// with a problem. The checks find: paths of one particular machine, unfinished work
// without an issue, private codes, Go files that are too long, packages without a doc
// comment, dead links, missing tests and functions that a page names, and services
// without a complete README. Three ratchets apply as well: the number of marker words and
// of type names with several meanings may only fall, and commits need a short subject and
// a body.
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

// Finding is one problem in the repository.
type Finding struct {
	Path string
	Line int // 0 when the finding is about the whole file
	What string
}

// String returns the finding in the format of editors: path:line: message.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.What)
}

// sizeMax is the maximum size of a text file: larger files are data, which other tests
// compare.
const sizeMax = 1 << 20

// Files returns every text file and picture that git tracks, or would track.
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
		case os.IsNotExist(err): // deleted, but not in git's index
			continue
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", name, err)
		case strings.HasSuffix(name, ".png"):
			text = nil // Pages show pictures, which have no text.
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

// isData reports whether a file is test data, which must not change.
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
