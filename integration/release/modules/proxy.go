package modules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
)

// home is the place of the repository, from which the go command derives its address.
const home = "github.com/joist-autoscaler/joist"

// download fetches modules from the clone into a module cache of its own, by the way that the go command takes to
// GitHub, and returns their hashes.
func (r ModuleRelease) download(ctx context.Context, cache string, modules []Module) (map[string]sum, error) {
	out, err := runGo(ctx, os.TempDir(), []string{
		"GOWORK=off", "GOFLAGS=-modcacherw", "GOMODCACHE=" + cache, "GOPROXY=direct", "GONOPROXY=", "GONOSUMDB=" + home + "/*",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + r.Clone + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + home,
	}, append([]string{"mod", "download", "-json"}, r.paths(modules)...)...)
	if err != nil {
		return nil, err
	}
	sums := map[string]sum{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var m struct{ Path, Sum, GoModSum string }
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return sums, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		sums[m.Path] = sum{Zip: m.Sum, GoMod: m.GoModSum}
	}
}

// runGo runs the go command and returns its output. Errors have its standard error.
func runGo(ctx context.Context, dir string, environ []string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Env = dir, append(os.Environ(), environ...)
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, errors.String(), out.String())
	}
	return out.Bytes(), nil
}

// environ lets the go command find Joist's modules in the proxy alone, and all others where it usually does. The
// checksum database, which does not know this release yet, is asked for the others only.
func (r ModuleRelease) environ(ctx context.Context) ([]string, error) {
	out, err := runGo(ctx, os.TempDir(), nil, "env", "GOPROXY")
	if err != nil {
		return nil, err
	}
	return []string{
		"GOWORK=off", "GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB=" + home + "/*",
		"GOPROXY=file://" + r.Proxy + "," + strings.TrimSpace(string(out)),
	}, nil
}

// Build compiles every package of each module, with only that module's requirements, and finds missing hashes.
func (r ModuleRelease) Build(ctx context.Context, m Module) error {
	environ, err := r.environ(ctx)
	if err != nil {
		return err
	}
	// This is what a developer does in the release commit: every hash must be in go.sum, also those of tests.
	dir := filepath.Join(r.Clone, m.Dir)
	if _, err := runGo(ctx, dir, append(environ, addFlags("-mod=readonly")), "list", "-test", "-deps", "./..."); err != nil {
		return fmt.Errorf("checking the hashes of %s: %w", m.Path, err)
	}
	// This is what another module that requires it does: the files come from the proxy.
	user, err := os.MkdirTemp("", "joist-release-")
	if err != nil {
		return fmt.Errorf("creating a module that requires %s: %w", m.Path, err)
	}
	defer os.RemoveAll(user)
	text := fmt.Sprintf("module user\n\ngo 1.26.0\n\nrequire %s %s\n", m.Path, r.Version)
	if err := writeFile(filepath.Join(user, "go.mod"), text); err != nil {
		return err
	}
	known, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading hashes: %w", err)
	}
	if err := writeFile(filepath.Join(user, "go.sum"), string(known)); err != nil {
		return err
	}
	if _, err := runGo(ctx, user, append(environ, addFlags("-mod=mod -buildvcs=false")), "build", m.Path+"/..."); err != nil {
		return fmt.Errorf("building %s from the proxy: %w", m.Path, err)
	}
	return nil
}

// addFlags keeps the flags of the environment, with which the go command has compiled most packages already.
func addFlags(flags string) string {
	return "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" "+flags)
}

// Install runs go install for a package of the release, such as services/cli/cmd/joist, with the user's own module
// cache and flags.
func (r ModuleRelease) Install(ctx context.Context, pkg, gobin string) error {
	environ, err := r.environ(ctx)
	if err != nil {
		return err
	}
	_, err = runGo(ctx, os.TempDir(), append(environ, "GOBIN="+gobin), "install", home+"/"+pkg+"@"+r.Version)
	return err
}

// Clean removes the release's modules from the user's module cache.
func (r ModuleRelease) Clean(ctx context.Context) error {
	out, err := runGo(ctx, os.TempDir(), nil, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	cache := strings.TrimSpace(string(out))
	for _, m := range r.Modules {
		path, err := module.EscapePath(m.Path)
		if err != nil {
			return fmt.Errorf("finding %s in the module cache: %w", m.Path, err)
		}
		downloads, err := filepath.Glob(filepath.Join(cache, "cache", "download", path, "@v", r.Version+".*"))
		if err != nil {
			return fmt.Errorf("finding %s in the module cache: %w", m.Path, err)
		}
		// The list names the versions, and the go command writes it again.
		downloads = append(downloads, filepath.Join(cache, "cache", "download", path, "@v", "list"), filepath.Join(cache, path+"@"+r.Version))
		for _, path := range downloads {
			if err := removeDownloads(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeDownloads removes a folder of the module cache, in which folders are read-only.
func removeDownloads(path string) error {
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o755) //nolint:gosec // folders must be writable to be removed
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("making %s writable: %w", path, err)
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}
