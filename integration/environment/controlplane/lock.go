package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A fileLock is held by one process at a time. The kernel releases it when the process
// exits. The file stays.
type fileLock struct{ file *os.File }

// lockFile waits for the lock, or for the end of ctx. It polls, because the kernel's own
// wait cannot be cancelled.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	var lock *fileLock
	err := poll(ctx, 100*time.Millisecond, func() (done bool, err error) {
		lock, err = tryLockFile(path)
		return lock != nil, err
	})
	return lock, err
}

// tryLockFile returns nil without an error if another process holds the lock.
func tryLockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &fileLock{file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

func (l *fileLock) unlock() { _ = l.file.Close() }

// poll calls ask until it is done or fails, or until the end of ctx.
func poll(ctx context.Context, every time.Duration, ask func() (done bool, err error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
