package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Package has the facts about one package that the rules need.
type Package struct {
	Path        string
	Dir         string
	Files       []string // absolute paths of its non-test Go files
	Imports     []string
	TestImports []string
	Dependency  bool // listed only because another package imports it
}

// Graph maps import paths to packages of one module and its dependencies.
type Graph map[string]Package

// Roots returns the module's own packages in order.
func (g Graph) Roots() []string {
	var roots []string
	for path := range maps.Keys(g) {
		if !g[path].Dependency {
			roots = append(roots, path)
		}
	}
	slices.Sort(roots)
	return roots
}

// listed is the part of go list's output that Load reads.
type listed struct {
	ImportPath, Dir                    string
	DepOnly                            bool
	GoFiles, CgoFiles, IgnoredGoFiles  []string
	Imports, TestImports, XTestImports []string
	Error                              *struct{ Err string }
}

const fields = "-json=ImportPath,Dir,DepOnly,GoFiles,CgoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports,Error"

var tagsLine = regexp.MustCompile(`(?m)^readonly build_tags=(\S+)$`)

// BuildTags returns the tags of every build, from .ci/flags in a checkout.
func BuildTags(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, ".ci", "flags"))
	if err != nil {
		return "", fmt.Errorf("reading the build tags: %w", err)
	}
	found := tagsLine.FindSubmatch(text)
	if found == nil {
		return "", errors.New("reading the build tags: .ci/flags has no line readonly build_tags=")
	}
	return string(found[1]), nil
}

// Load returns the graph of the module in dir with build tags, from the go command. It
// ignores the workspace unless workspace is set, because released binaries are built
// without it. An incomplete graph is an error, because it could hide a violation.
func Load(dir string, workspace bool, tags string) (Graph, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-tags="+tags, fields, "./...")
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if !workspace {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages of %s: %w: %s", dir, err, stderr.String())
	}
	return decode(bytes.NewReader(out))
}

func decode(r io.Reader) (Graph, error) {
	g := Graph{}
	var holes error
	for d := json.NewDecoder(r); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return g, holes
		} else if err != nil {
			return nil, fmt.Errorf("decoding the list of packages: %w", err)
		}
		if l.Error != nil {
			holes = errors.Join(holes, fmt.Errorf("cannot judge %s: %s", l.ImportPath, strings.TrimSpace(l.Error.Err)))
		}
		p, err := l.asPackage()
		if err != nil {
			holes = errors.Join(holes, err)
		}
		g[p.Path] = p
	}
}

func (l listed) asPackage() (Package, error) {
	p := Package{
		Path:        l.ImportPath,
		Dir:         l.Dir,
		Imports:     l.Imports,
		TestImports: append(l.TestImports, l.XTestImports...),
		Dependency:  l.DepOnly,
	}
	for _, name := range append(l.GoFiles, l.CgoFiles...) {
		p.Files = append(p.Files, filepath.Join(l.Dir, name))
	}
	if !isOwn(p.Path) {
		return p, nil
	}
	return p, p.addIgnored(l.IgnoredGoFiles)
}

// addIgnored adds the imports of files that build tags exclude: a rule applies on every
// platform and with every tag.
func (p *Package) addIgnored(names []string) error {
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("reading the imports of %s: %w", name, err)
		}
		into := &p.Imports
		if strings.HasSuffix(name, "_test.go") {
			into = &p.TestImports
		} else {
			p.Files = append(p.Files, filepath.Join(p.Dir, name))
		}
		for _, spec := range file.Imports {
			*into = append(*into, strings.Trim(spec.Path.Value, `"`))
		}
	}
	return nil
}
