package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// The test binary runs itself in two roles: as "etcd" it holds a lock while it runs, and
// with parentEnv it starts that etcd and waits.
const (
	parentEnv = "JOIST_TEST_PARENT"
	aliveLock = "alive.lock"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == etcd {
		liveForever()
	}
	if dir := os.Getenv(parentEnv); dir != "" {
		beParent(dir)
	}
	os.Exit(m.Run())
}

func liveForever() {
	lock, err := tryLockFile(aliveLock)
	if err != nil || lock == nil {
		panic(fmt.Sprintf("%v %v", lock, err))
	}
	fmt.Println("alive")
	if runtime.GOOS != "linux" {
		_, _ = io.Copy(io.Discard, os.Stdin) // as the real programs do
		os.Exit(1)
	}
	for {
		time.Sleep(time.Hour)
	}
}

func beParent(dir string) {
	if _, err := startEtcd(dir); err != nil {
		panic(err)
	}
	fmt.Println("started")
	for {
		time.Sleep(time.Hour)
	}
}

func startEtcd(dir string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(self, filepath.Join(dir, etcd)); err != nil {
		return nil, err
	}
	return startProcess(layout{assets: dir, dir: dir, logs: dir}, etcd, nil)
}

// TestProgramEndsWithItsParent checks that a program ends when its parent is killed and cannot clean up.
func TestProgramEndsWithItsParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := parent.StdoutPipe()
	check(t, err)
	check(t, parent.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	check(t, err)
	eventually(t.Context(), t, "the program to start", func() error { return alive(dir, true) })
	check(t, parent.Process.Kill())
	_ = parent.Wait()
	eventually(t.Context(), t, "the program to end", func() error { return alive(dir, false) })
}

// alive checks the lock, because the kernel releases it at exit, and not when a parent
// waits for the process.
func alive(dir string, want bool) error {
	lock, err := tryLockFile(filepath.Join(dir, aliveLock))
	if err != nil {
		return err
	}
	if lock != nil {
		lock.unlock()
	}
	if got := lock == nil; got != want {
		return fmt.Errorf("running: %t", got)
	}
	return nil
}

func TestKillProcess(t *testing.T) {
	dir := t.TempDir()
	p, err := startEtcd(dir)
	check(t, err)
	eventually(t.Context(), t, "the program to start", func() error { return alive(dir, true) })
	p.kill()
	p.kill() // a second call has no effect
	check(t, alive(dir, false))
}

func TestStartMissingProgram(t *testing.T) {
	dir := t.TempDir()
	if _, err := startProcess(layout{assets: dir, dir: dir, logs: dir}, kwok, nil); err == nil {
		t.Error("a missing program was started")
	}
}

// TestScratchFoldersAreRemoved checks that the next run removes the folder of a process that has exited,
// and never that of a running one.
func TestScratchFoldersAreRemoved(t *testing.T) {
	base := t.TempDir()
	living, err := newScratch(t.Context(), base)
	check(t, err)
	dead, err := newScratch(t.Context(), base)
	check(t, err)
	dead.lock.unlock() // as the kernel does at exit

	next, err := newScratch(t.Context(), base)
	check(t, err)
	if !isFile(filepath.Join(living.dir, ownerLock)) {
		t.Error("the folder of a running process was removed")
	}
	if isFile(filepath.Join(dead.dir, ownerLock)) {
		t.Error("the folder of an exited process was not removed")
	}
	check(t, living.remove())
	check(t, next.remove())
	left, err := filepath.Glob(filepath.Join(base, "*", "run-*"))
	check(t, err)
	if len(left) != 0 {
		t.Errorf("files remain: %v", left)
	}
}

func TestScratchBase(t *testing.T) {
	if got, want := scratchBase(filepath.Join(t.TempDir(), "missing")), os.TempDir(); got != want { //nolint:usetesting // it is what the code falls back to
		t.Errorf("without shared memory got %s, want %s", got, want)
	}
}

func TestLockWaitIsCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lockFile(t.Context(), path)
	check(t, err)
	defer held.unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lock, err := lockFile(ctx, path); err == nil || lock != nil {
		t.Errorf("got %v, %v for a lock that is held", lock, err)
	}
}
