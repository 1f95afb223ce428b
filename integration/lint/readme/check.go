package readme

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Repository has the facts that commands are checked against.
type Repository struct {
	// Root is its folder.
	Root string
	// Targets and Variables are the Makefile's.
	Targets, Variables map[string]bool
	// Kinds are the kinds for kubectl.
	Kinds map[string]bool
	// Outputs are the stack's outputs.
	Outputs map[string]bool
	// Tests are the tests and benchmarks of each folder, relative to Root.
	Tests map[string][]string
}

// place is a command with its location.
type place struct {
	Repository
	Command
	// dirs are the folders where it may run, relative to the root.
	dirs []string
}

// checks are the programs that pages may use, with the check of their arguments.
var checks = map[string]func(p place) error{
	"make": checkMake, "joist": checkJoist, "helm": checkHelm, "kubectl": checkKubectl, "go": checkGo, "aws": checkAWS,
	"npx": checkNPX, "ko": checkKo, "terraform": checkTerraform, "cfn-lint": checkFiles, "gunzip": checkAnything, "chronyc": checkAnything,
	// Programs that read a release, which is not in the repository.
	"cosign": checkAnything, "gh": checkAnything, "brew": checkAnything, "sha256sum": checkAnything, "tar": checkAnything,
	// Shell builtins, and programs that only transform text.
	"cd": checkDir, "export": checkAnything, "eval": checkAnything, "date": checkAnything, "echo": checkAnything, "envsubst": checkAnything,
}

// Begins returns the programs that identify inline code as a command.
func Begins() map[string]bool {
	begins := map[string]bool{}
	for program := range checks {
		begins[program] = program != "export" && program != "eval" && program != "date"
	}
	return begins
}

// Check returns an error if a command on a page in the folder cannot work.
func (r Repository) Check(c Command, folder string, inline bool) error {
	check, ok := checks[c.Args[0]]
	if !ok {
		return fmt.Errorf("nothing checks %s: add a check to integration/lint/readme", c.Args[0])
	}
	p := place{Repository: r, Command: c, dirs: []string{c.Dir}}
	if inline {
		// The sentence names the folder; the command may run in any module.
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

// checkFiles checks programs that read the named files.
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

// exists checks that a file exists; a variable in its name matches any text.
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

// flagged returns the values of a flag, written as -f VALUE or -f=VALUE.
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

// known returns an error if one of the words is unknown.
func known(what string, words []string, among map[string]bool) error {
	if i := slices.IndexFunc(words, func(word string) bool { return !among[word] }); i >= 0 {
		return fmt.Errorf("there is no %s %s", what, words[i])
	}
	return nil
}
