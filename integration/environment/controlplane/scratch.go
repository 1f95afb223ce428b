package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A scratch is the folder of one run. Its owner holds a lock in it, so that any process
// can check whether the owner still runs, also across PID namespaces.
type scratch struct {
	dir  string
	lock *fileLock
}

const ownerLock = "owner.lock"

// newScratch creates a folder for a run, and removes the folders of runs whose process
// exited without cleanup. One lock covers both, so that no folder is removed between its
// creation and its locking.
func newScratch(ctx context.Context, base string) (*scratch, error) {
	root := filepath.Join(base, "joist-controlplane-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("creating a folder for the control plane's data: %w", err)
	}
	all, err := lockFile(ctx, filepath.Join(root, "lock"))
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the control plane's data: %w", err)
	}
	defer all.unlock()
	sweep(root)
	dir, err := os.MkdirTemp(root, "run-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the control plane's data: %w", err)
	}
	lock, err := lockFile(ctx, filepath.Join(dir, ownerLock))
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the control plane's data: %w", err)
	}
	return &scratch{dir, lock}, nil
}

// sweep removes folders without a running owner. Errors are ignored.
func sweep(root string) {
	runs, _ := filepath.Glob(filepath.Join(root, "run-*"))
	for _, dir := range runs {
		if lock, err := tryLockFile(filepath.Join(dir, ownerLock)); err == nil && lock != nil {
			_ = os.RemoveAll(dir)
			lock.unlock()
		}
	}
}

func (s *scratch) remove() error {
	defer s.lock.unlock()
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the control plane's data: %w", err)
	}
	return nil
}

// roomNeeded is twice the size of etcd's log and data in a large test. A container's
// default of 64 MiB would not even hold the empty log.
const roomNeeded = 512 << 20

// scratchBase prefers memory, because etcd on a busy disk takes most of a slow start.
func scratchBase(memory string) string {
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < roomNeeded {
		return os.TempDir()
	}
	probe, err := os.MkdirTemp(memory, "joist-probe-")
	if err != nil {
		return os.TempDir()
	}
	_ = os.Remove(probe)
	return memory
}
