// Package tool builds programs of other projects from the Go module proxy, once per version,
// into .cache/bin. It also finds addresses on which programs may listen.
package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"syscall"
)

// GoTool is a program at an exact version.
type GoTool struct {
	// Package is the import path of the program.
	Package, Version string
}

var major = regexp.MustCompile(`/v[0-9]+$`)

// Name returns the program's name, such as helm, as the go command derives it: the last
// element of the import path that is no major version.
func (t GoTool) Name() string { return path.Base(major.ReplaceAllString(t.Package, "")) }

// Build returns the path of the program, and builds it if that version is absent.
func (t GoTool) Build(ctx context.Context, repository string) (program string, err error) {
	into, err := filepath.Abs(filepath.Join(repository, ".cache", "bin"))
	if err != nil {
		return "", fmt.Errorf("finding a folder for %s: %w", t.Name(), err)
	}
	program = filepath.Join(into, t.Name()+"-"+t.Version)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return "", fmt.Errorf("creating a folder for %s: %w", t.Name(), err)
	}
	// Several processes may need the program at the same time.
	lock, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("opening the lock of %s: %w", t.Name(), err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking the folder of %s: %w", t.Name(), err)
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, t.compile(ctx, into, program)
}

// compile builds the program outside the workspace, with its own dependencies and flags.
func (t GoTool) compile(ctx context.Context, into, program string) error {
	fmt.Fprintf(os.Stderr, "building %s %s (minutes, once)\n", t.Name(), t.Version)
	folder, err := os.MkdirTemp(into, t.Name()+".")
	if err != nil {
		return fmt.Errorf("creating a folder for %s: %w", t.Name(), err)
	}
	defer os.RemoveAll(folder)
	command := exec.CommandContext(ctx, "go", "install", t.Package+"@"+t.Version)
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOBIN="+folder)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s %s: %w\n%s", t.Name(), t.Version, err, out)
	}
	if err := os.Rename(filepath.Join(folder, t.Name()), program); err != nil {
		return fmt.Errorf("moving %s to its folder: %w", t.Name(), err)
	}
	return nil
}
