package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The services, by where they run.
var (
	inCluster = []string{"watcher", "lifecycle"}
	outside   = []string{"planner", "disruption", "launcher", "interruption", "catalog"}
)

// BuildBinaries compiles every service into .cache and returns the folder.
var BuildBinaries = sync.OnceValues(func() (string, error) {
	into, err := filepath.Abs(filepath.Join(Root, ".cache", "e2e"))
	if err != nil {
		return "", fmt.Errorf("finding a folder for the binaries: %w", err)
	}
	// Tests of two packages may run at the same time: the second finds all binaries
	// up to date and replaces none that runs.
	lock, err := lockFolder(into)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	began := time.Now()
	for _, service := range Services() {
		if err := installBinary(Root, service, into); err != nil {
			return "", err
		}
		fmt.Fprintf(os.Stderr, "built joist-%s (%.1f s)\n", service, time.Since(began).Seconds())
	}
	return into, nil
})

// BuildTools compiles a person's commands, joist and kubectl, into .cache and returns the folder.
var BuildTools = sync.OnceValues(func() (string, error) {
	into, err := filepath.Abs(filepath.Join(Root, ".cache", "tools"))
	if err != nil {
		return "", fmt.Errorf("finding a folder for the commands: %w", err)
	}
	lock, err := lockFolder(into)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := installPackage(filepath.Join(Root, "services", "cli"), "./cmd/joist", into, "GOWORK=off"); err != nil {
		return "", err
	}
	return into, installPackage(filepath.Join(Root, "integration"), "./environment/kubectl", into)
})

// BuildBinary compiles one service into .cache and returns its path.
func BuildBinary(service string) (string, error) {
	into, err := filepath.Abs(filepath.Join(Root, ".cache", "e2e"))
	if err != nil {
		return "", fmt.Errorf("finding a folder for the binary: %w", err)
	}
	lock, err := lockFolder(into)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	return filepath.Join(into, "joist-"+service), installBinary(Root, service, into)
}

// installBinary builds one service of a source tree by its own go.mod, as a release does.
func installBinary(root, service, into string) error {
	return installPackage(filepath.Join(root, "services", service), "./cmd/joist-"+service, into, "GOWORK=off")
}

// installPackage builds the command of a module's folder. It uses go install, which links only changed binaries, without
// the commit in the binary.
func installPackage(module, name, into string, environ ...string) error {
	command := exec.Command("go", "install", "-buildvcs=false", name) //nolint:noctx // a build is not part of a test's time
	command.Dir = module
	command.Env = slices.Concat(os.Environ(), []string{"GOBIN=" + into}, environ)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", filepath.Base(name), err, out)
	}
	return nil
}

// lockFolder waits until only this process may write to the folder. Closing the file, or the end of the process,
// releases the lock.
func lockFolder(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("creating a folder for the binaries: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of %s: %w", path, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return file, nil
}
