package modules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// CutOptions are the inputs of Cut.
type CutOptions struct {
	// Repository is a folder of the repository. Cut changes nothing in it.
	Repository string
	// Version is the release's, such as v0.1.0. If it is empty, NextDryRun chooses one.
	Version string
	// Scratch is an empty or new folder for the clone and the proxy.
	Scratch string
}

// ModuleRelease is a release commit in a scratch clone.
type ModuleRelease struct {
	Version string
	// Source is the released commit, and Commit the release commit: its child, with the go.mod files of a release.
	Source, Commit string
	// Modules are the released modules. A module comes after its requirements.
	Modules []Module
	// Clone is a clone in which the release commit is checked out and tagged.
	Clone string
	// Proxy is a folder for GOPROXY=file://.
	Proxy string
}

// Module is a Go module of the repository.
type Module struct {
	// Path is the module's path, and Dir its folder, relative to the repository.
	Path, Dir string
	// requires are the paths of Joist's modules that it requires directly or indirectly.
	requires []string
}

// Tag is the module's tag in the repository.
func (m Module) Tag(version string) string { return m.Dir + "/" + version }

// unreleased are modules that only the repository itself uses.
var unreleased = []string{"integration", "integration/cataloggen"}

// Cut makes the release commit of the repository's HEAD and a proxy that serves its modules.
func Cut(ctx context.Context, o CutOptions) (ModuleRelease, error) {
	repository := git{dir: o.Repository}
	r, err := repository.checkRelease(ctx, o.Version)
	if err != nil {
		return ModuleRelease{}, err
	}
	if r.Clone, r.Proxy, err = prepareScratch(o.Scratch); err != nil {
		return ModuleRelease{}, err
	}
	top, err := repository.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return ModuleRelease{}, err
	}
	if _, err := repository.run(ctx, "clone", "--quiet", "--shared", "--no-checkout", "--no-tags", top, r.Clone); err != nil {
		return ModuleRelease{}, err
	}
	clone := git{dir: r.Clone}
	if clone.environ, err = clone.commitEnvironment(ctx, r.Source); err != nil {
		return ModuleRelease{}, err
	}
	if _, err := clone.run(ctx, "checkout", "--quiet", "--detach", r.Source); err != nil {
		return ModuleRelease{}, err
	}
	files, err := readModules(r.Clone)
	if err != nil {
		return ModuleRelease{}, err
	}
	if err := r.writeRelease(ctx, clone, files); err != nil {
		return ModuleRelease{}, err
	}
	return r, nil
}

// prepareScratch returns the folders of the clone and of the proxy, of which the first does not exist yet.
func prepareScratch(scratch string) (clone, proxy string, err error) {
	if scratch, err = filepath.Abs(scratch); err != nil {
		return "", "", fmt.Errorf("finding the scratch folder: %w", err)
	}
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", fmt.Errorf("reading the scratch folder: %w", err)
	}
	if len(entries) > 0 {
		return "", "", fmt.Errorf("the scratch folder %s is not empty. Try: another folder, or remove it", scratch)
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return "", "", fmt.Errorf("creating the scratch folder: %w", err)
	}
	return filepath.Join(scratch, "clone"), filepath.Join(scratch, "downloads", "cache", "download"), nil
}

// writeRelease writes and tags the modules, those without requirements first, and fills the proxy.
func (r *ModuleRelease) writeRelease(ctx context.Context, clone git, files map[string]*modfile.File) error {
	levels, err := sortModules(files)
	if err != nil {
		return err
	}
	sums := map[string]sum{}
	hashes, err := os.MkdirTemp("", "joist-release-")
	if err != nil {
		return fmt.Errorf("creating a folder for downloads: %w", err)
	}
	// The folder is temporary: what remains of it is removed with the others.
	defer func() { _ = removeDownloads(hashes) }()
	for _, level := range levels {
		for _, m := range level {
			if err := writeModule(r.Clone, m, files[m.Dir], r.Version, sums); err != nil {
				return err
			}
		}
		if err := clone.commitRelease(ctx, *r); err != nil {
			return err
		}
		if slices.ContainsFunc(level, func(m Module) bool { return slices.Contains(unreleased, m.Dir) }) {
			continue
		}
		if err := clone.tagModules(ctx, level, r.Version); err != nil {
			return err
		}
		found, err := r.download(ctx, hashes, level)
		if err != nil {
			return err
		}
		maps.Copy(sums, found)
		r.Modules = append(r.Modules, level...)
	}
	if r.Commit, err = clone.run(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	if err := clone.tagModules(ctx, r.Modules, r.Version); err != nil {
		return err
	}
	final, err := r.download(ctx, strings.TrimSuffix(r.Proxy, filepath.Join("cache", "download")), r.Modules)
	if err != nil {
		return err
	}
	for path, want := range sums {
		if final[path] != want {
			return fmt.Errorf("%s@%s has the hashes %v at the release commit, but go.sum files have %v", path, r.Version, final[path], want)
		}
	}
	return nil
}

// Paths returns the modules with the version, as go get takes them.
func (r ModuleRelease) paths(modules []Module) []string {
	var out []string
	for _, m := range modules {
		out = append(out, module.Version{Path: m.Path, Version: r.Version}.String())
	}
	return out
}
