package world

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// The services, by where they run.
var (
	inCluster = []string{"watcher", "lifecycle"}
	outside   = []string{"planner", "disruption", "launcher", "interruption", "catalog"}
)

// Binaries compiles every service into .cache, and gives the folder.
var Binaries = sync.OnceValues(func() (string, error) {
	into, err := filepath.Abs(filepath.Join(Root, ".cache", "e2e"))
	if err != nil {
		return "", fmt.Errorf("finding a folder for the binaries: %w", err)
	}
	began := time.Now()
	for _, service := range append(append([]string{}, inCluster...), outside...) {
		if err := install(service, into); err != nil {
			return "", err
		}
		fmt.Fprintf(os.Stderr, "built joist-%s (%.1f s)\n", service, time.Since(began).Seconds())
	}
	return into, nil
})

// install builds one service by its own go.mod, as a release does. It is
// `go install`, which links nothing that is up to date, and it leaves the commit
// out, which would make every commit a reason to link.
func install(service, into string) error {
	command := exec.Command("go", "install", "-buildvcs=false", "./cmd/joist-"+service) //nolint:noctx // a build is not part of a test's time
	command.Dir = filepath.Join(Root, "services", service)
	command.Env = append(os.Environ(), "GOWORK=off", "GOBIN="+into)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building joist-%s: %w\n%s", service, err, out)
	}
	return nil
}
