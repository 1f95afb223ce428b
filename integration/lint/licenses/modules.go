package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ours is the prefix of Joist's own modules, whose licence is the file LICENSE.
const ours = "github.com/joist-autoscaler/joist/"

// standardLibrary is the name of Go's standard library in the report.
const standardLibrary = "Go standard library"

// command is a shipped command, built for one operating system.
type command struct {
	Dir string // directory of package main
	OS  string
}

// module is a dependency that is linked into a shipped command.
type module struct {
	Path      string
	Licenses  map[string]string // text by path in the module, such as LICENSE or internal/snapref/LICENSE
	Notices   map[string]string // the same for NOTICE files
	Importers []string          // packages of other modules that import it, sorted
}

// listedPackage is what `go list` reports about a package.
type listedPackage struct {
	ImportPath string
	Dir        string
	Imports    []string
	Standard   bool
	Module     *struct{ Path, Dir string }
}

// shippedCommands returns the commands that a release contains. The functions and services run on Linux;
// users run the CLI on other systems as well, where it links other packages.
func shippedCommands(root string) ([]command, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "services", "*", "cmd", "*"))
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("finding commands in %s/services: found %d: %w", root, len(dirs), err)
	}
	dirs = append(dirs, filepath.Join(root, "infra", "cmd", "joist-spotrole"))
	var commands []command
	for _, dir := range dirs {
		commands = append(commands, command{dir, "linux"})
		if strings.Contains(filepath.ToSlash(dir), "/services/cli/") {
			commands = append(commands, command{dir, "darwin"}, command{dir, "windows"})
		}
	}
	return commands, nil
}

// linkedModules returns the modules of other projects that the commands link, sorted by path.
func linkedModules(commands []command) ([]*module, error) {
	lists := make([][]listedPackage, len(commands))
	errs := make([]error, len(commands))
	var group sync.WaitGroup
	for i, c := range commands {
		group.Go(func() { lists[i], errs[i] = listPackages(c) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	found := map[string]*module{}
	read := map[string]bool{}
	for _, list := range lists {
		if err := addModules(found, read, list); err != nil {
			return nil, err
		}
	}
	modules := make([]*module, 0, len(found))
	for _, m := range found {
		slices.Sort(m.Importers)
		m.Importers = slices.Compact(m.Importers)
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// listPackages lists every package of a command as a release builds it: with the versions
// of its own go.mod, not those of the workspace.
func listPackages(c command) ([]listedPackage, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Imports,Standard,Module", ".")
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS="+c.OS, "GOARCH=arm64", "CGO_ENABLED=0")
	var message strings.Builder
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s for %s: %w: %s", c.Dir, c.OS, err, strings.TrimSpace(message.String()))
	}
	var list []listedPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding the packages of %s: %w", c.Dir, err)
		}
		list = append(list, p)
	}
}

// addModules adds the modules of the listed packages, with licence files and importers.
// Directories in read are not read again.
func addModules(found map[string]*module, read map[string]bool, list []listedPackage) error {
	origin := map[string]string{} // module by package
	for _, p := range list {
		name, dir, err := locateModule(p)
		if err != nil {
			return err
		}
		origin[p.ImportPath] = name
		if name == "" {
			continue
		}
		m := found[name]
		if m == nil {
			m = &module{Path: name, Licenses: map[string]string{}, Notices: map[string]string{}}
			found[name] = m
		}
		from := p.Dir
		if name == standardLibrary {
			from = dir
		}
		if err := m.readLicenses(from, dir, read); err != nil {
			return err
		}
	}
	for _, p := range list {
		for _, imported := range p.Imports {
			if m := found[origin[imported]]; m != nil && origin[p.ImportPath] != m.Path && m.Path != standardLibrary {
				m.Importers = append(m.Importers, p.ImportPath)
			}
		}
	}
	return nil
}

// locateModule returns the name and the directory of a package's module, and no name for
// Joist's own packages.
func locateModule(p listedPackage) (name, dir string, err error) {
	switch {
	case p.Standard && p.Dir != "":
		// The packages are in src, and the licence is in the directory that contains it.
		dir, _, _ = strings.Cut(filepath.ToSlash(p.Dir), "/src/")
		return standardLibrary, filepath.FromSlash(dir), nil
	case p.Module == nil || p.Module.Dir == "":
		return "", "", fmt.Errorf("finding the licence of %s: its module is not downloaded (try: go mod download)", p.ImportPath)
	case strings.HasPrefix(p.Module.Path+"/", ours):
		return "", "", nil
	}
	return p.Module.Path, p.Module.Dir, nil
}

// overview is the name of a file of AWS that names the licence files and contains none.
const overview = "LICENSE-SUMMARY"

var (
	licenseFile = regexp.MustCompile(`(?i)^(li[cs]en[cs]e|copying|unlicense)([-_.].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice([-_.].*)?$`)
)

// readLicenses reads the licence and notice files of dir and of its parents up to the
// module's root.
func (m *module) readLicenses(dir, moduleRoot string, read map[string]bool) error {
	for ; !read[dir]; dir = filepath.Dir(dir) {
		read[dir] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("reading the licences of %s: %w", m.Path, err)
		}
		for _, entry := range entries {
			name := entry.Name()
			isLicense, isNotice := licenseFile.MatchString(name), noticeFile.MatchString(name)
			if entry.IsDir() || filepath.Ext(name) == ".go" || name == overview || !isLicense && !isNotice {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return fmt.Errorf("reading a licence of %s: %w", m.Path, err)
			}
			path, err := filepath.Rel(moduleRoot, filepath.Join(dir, name))
			if err != nil {
				return fmt.Errorf("reading a licence of %s: %w", m.Path, err)
			}
			texts := m.Licenses
			if isNotice {
				texts = m.Notices
			}
			texts[filepath.ToSlash(path)] = string(text)
		}
		if dir == moduleRoot {
			break
		}
	}
	return nil
}
