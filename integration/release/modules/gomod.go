package modules

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// sum has the hashes of a module's files and of its go.mod, as in go.sum.
type sum struct{ Zip, GoMod string }

// readModules reads every go.mod of the workspace, by folder, and those of the modules that are not in it.
func readModules(root string) (map[string]*modfile.File, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, fmt.Errorf("reading the workspace: %w", err)
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the workspace: %w", err)
	}
	dirs := slices.Clone(unreleased)
	for _, use := range work.Use {
		dirs = append(dirs, filepath.Clean(use.Path))
	}
	files := map[string]*modfile.File{}
	for _, dir := range dirs {
		path := filepath.Join(root, dir, "go.mod")
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) && slices.Contains(unreleased, dir) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a module: %w", err)
		}
		if files[dir], err = modfile.Parse(path, text, nil); err != nil {
			return nil, fmt.Errorf("reading a module: %w", err)
		}
	}
	return files, nil
}

// sortModules returns the modules in levels: a module's requirements are in earlier levels. Unreleased modules are
// the last level.
func sortModules(files map[string]*modfile.File) ([][]Module, error) {
	waiting := map[string]Module{}
	for dir, file := range files {
		waiting[file.Module.Mod.Path] = Module{Path: file.Module.Mod.Path, Dir: dir}
	}
	ours := maps.Clone(waiting)
	var last []Module
	for path, m := range ours {
		for _, require := range files[m.Dir].Require {
			if other, ok := ours[require.Mod.Path]; ok {
				m.requires = append(m.requires, other.Path)
				if slices.Contains(unreleased, other.Dir) && !slices.Contains(unreleased, m.Dir) {
					return nil, fmt.Errorf("%s requires %s, which is not released", m.Path, other.Path)
				}
			}
		}
		waiting[path] = m
		if slices.Contains(unreleased, m.Dir) {
			last = append(last, m)
			delete(waiting, path)
		}
	}
	var levels [][]Module
	for len(waiting) > 0 {
		var level []Module
		for _, path := range slices.Sorted(maps.Keys(waiting)) {
			if !slices.ContainsFunc(waiting[path].requires, func(other string) bool { _, ok := waiting[other]; return ok }) {
				level = append(level, waiting[path])
			}
		}
		if len(level) == 0 {
			return nil, fmt.Errorf("modules require each other in a circle: %s", strings.Join(slices.Sorted(maps.Keys(waiting)), ", "))
		}
		for _, m := range level {
			delete(waiting, m.Path)
		}
		levels = append(levels, level)
	}
	if len(last) > 0 {
		levels = append(levels, last)
	}
	return levels, nil
}

// writeModule sets the requirements of Joist's modules to the version. A released module loses the replace
// directives and gets the hashes of its requirements.
func writeModule(root string, m Module, file *modfile.File, version string, sums map[string]sum) error {
	for _, path := range m.requires {
		if err := file.AddRequire(path, version); err != nil {
			return fmt.Errorf("requiring %s in %s: %w", path, m.Path, err)
		}
	}
	if slices.Contains(unreleased, m.Dir) {
		return writeGoMod(root, m, file)
	}
	for _, replace := range slices.Clone(file.Replace) {
		if !slices.Contains(m.requires, replace.Old.Path) {
			return fmt.Errorf("%s/go.mod replaces %s, which go install does not allow. Try: require a released version of it", m.Dir, replace.Old.Path)
		}
		if err := file.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return fmt.Errorf("editing %s/go.mod: %w", m.Dir, err)
		}
	}
	if err := writeGoMod(root, m, file); err != nil {
		return err
	}
	path := filepath.Join(root, m.Dir, "go.sum")
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading hashes: %w", err)
	}
	var added []string
	for _, path := range m.requires {
		added = append(added, sumLines(path, version, sums[path])...)
	}
	if len(added) == 0 {
		return nil
	}
	return writeFile(path, insertSums(string(text), added))
}

func writeGoMod(root string, m Module, file *modfile.File) error {
	file.Cleanup()
	text, err := file.Format()
	if err != nil {
		return fmt.Errorf("writing %s/go.mod: %w", m.Dir, err)
	}
	return writeFile(filepath.Join(root, m.Dir, "go.mod"), string(text))
}

func writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), fs.FileMode(0o644)); err != nil {
		return fmt.Errorf("writing a module: %w", err)
	}
	return nil
}

func sumLines(path, version string, s sum) []string {
	return []string{path + " " + version + " " + s.Zip + "\n", path + " " + version + "/go.mod " + s.GoMod + "\n"}
}

// insertSums adds lines to a go.sum at the place at which go mod tidy puts them.
func insertSums(text string, added []string) string {
	lines := append(slices.Collect(strings.Lines(text)), added...)
	slices.SortStableFunc(lines, func(a, b string) int {
		pathA, _, _ := strings.Cut(a, " ")
		pathB, _, _ := strings.Cut(b, " ")
		return strings.Compare(pathA, pathB)
	})
	return strings.Join(lines, "")
}
