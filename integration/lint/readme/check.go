package readme

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Repository is what commands are held against.
type Repository struct {
	// Root is its folder.
	Root string
	// Targets and Variables are make's.
	Targets, Variables map[string]bool
	// Kinds are what kubectl can be asked for.
	Kinds map[string]bool
	// Outputs are the stack's.
	Outputs map[string]bool
	// Tests are those of each folder, relative to Root, with its benchmarks.
	Tests map[string][]string
}

// place is where a command is read and run.
type place struct {
	Repository
	Command
	// dirs are the folders that it may be meant to run in, relative to the root.
	dirs []string
}

// checks are the programs that pages may name, and what is known of their arguments.
var checks = map[string]func(p place) error{
	"make": checkMake, "joist": checkJoist, "helm": checkHelm, "kubectl": checkKubectl, "go": checkGo, "aws": checkAWS,
	"npx": checkNPX, "ko": checkKo, "cfn-lint": checkFiles, "gunzip": checkAnything, "chronyc": checkAnything,
	// A shell's own, and what only passes text on.
	"cd": checkDir, "export": checkAnything, "eval": checkAnything, "date": checkAnything, "envsubst": checkAnything,
}

// Begins are the programs by which a command within a line is known.
func Begins() map[string]bool {
	begins := map[string]bool{}
	for program := range checks {
		begins[program] = program != "export" && program != "eval" && program != "date"
	}
	return begins
}

// Check says what is wrong with a command of a page, which lies in a folder.
func (r Repository) Check(c Command, folder string, inline bool) error {
	check, ok := checks[c.Args[0]]
	if !ok {
		return fmt.Errorf("nothing checks %s: add a check to integration/lint/readme", c.Args[0])
	}
	p := place{Repository: r, Command: c, dirs: []string{c.Dir}}
	if inline {
		// The sentence says where; each module is a folder to be in.
		p.dirs = append(p.dirs, folder, "infra", "integration", "shared")
	}
	for _, file := range c.Reads {
		if err := p.exists(file); err != nil {
			return err
		}
	}
	return check(p)
}

func checkAnything(place) error { return nil }

func checkDir(p place) error { return p.exists(".") }

// checkFiles is of programs that read the files that they are given.
func checkFiles(p place) error {
	for _, arg := range p.Args[1:] {
		if arg[0] != '-' {
			if err := p.exists(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// exists finds a file; a variable in its name stands for anything.
func (p place) exists(file string) error {
	if len(p.find(file)) == 0 {
		return fmt.Errorf("there is no %s", file)
	}
	return nil
}

func (p place) find(file string) []string {
	for _, dir := range p.dirs {
		found, err := filepath.Glob(filepath.Join(p.Root, dir, variable.ReplaceAllString(file, "*")))
		if err == nil && len(found) > 0 {
			return found
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// flagged are the values of a flag, written as -f VALUE or -f=VALUE.
func flagged(args []string, names ...string) []string {
	var values []string
	for i, arg := range args {
		for _, name := range names {
			if arg == name && i+1 < len(args) {
				values = append(values, args[i+1])
			}
			if len(arg) > len(name) && arg[:len(name)+1] == name+"=" {
				values = append(values, arg[len(name)+1:])
			}
		}
	}
	return values
}

// known says which of some words is not among others.
func known(what string, words []string, among map[string]bool) error {
	if i := slices.IndexFunc(words, func(word string) bool { return !among[word] }); i >= 0 {
		return fmt.Errorf("there is no %s %s", what, words[i])
	}
	return nil
}
