package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// tinyProgram replaces the control plane: it compiles in a second.
const tinyProgram = `package main

import (
	"fmt"
	"os"
)

func main() { fmt.Println("started as", os.Args[0][len(os.Args[0])-len("kwok-stages"):]) }
`

func tinyBuild(t *testing.T, program string) build {
	t.Helper()
	source := t.TempDir()
	check(t, os.WriteFile(filepath.Join(source, "go.mod"), []byte("module tiny\n\ngo 1.26.0\n"), 0o600))
	check(t, os.WriteFile(filepath.Join(source, "main.go"), []byte(program), 0o600))
	return build{source: source, flags: []string{"-trimpath"}, dir: filepath.Join(t.TempDir(), "cache", "key")}
}

// TestBuildOnce checks that of several concurrent calls one compiles and the others wait
// for it.
func TestBuildOnce(t *testing.T) {
	b := tinyBuild(t, tinyProgram)
	var progress syncBuilder
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := b.ensure(t.Context(), &progress); err != nil {
				t.Error(err)
			}
			if err := checkAssets(b.dir, needed(false)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Count(progress.String(), "control plane: building"); got != 1 {
		t.Errorf("compiled %d times:\n%s", got, progress.String())
	}
	stages, err := os.ReadFile(filepath.Join(b.dir, kwokStages))
	check(t, err)
	if string(stages) != "started as kwok-stages\n" {
		t.Errorf("the stages are %q: the program was not started by its name", stages)
	}
}

// TestBuildFailure checks that a failed or cancelled build leaves nothing that looks
// complete, and that the next call succeeds.
func TestBuildFailure(t *testing.T) {
	b := tinyBuild(t, "package main\nfunc main() { undefined() }\n")
	var progress syncBuilder
	err := b.ensure(t.Context(), &progress)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v, want the compiler's error", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.ensure(canceled, &progress); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	if b.complete() {
		t.Error("a failed build is reported as complete")
	}
	check(t, os.WriteFile(filepath.Join(b.source, "main.go"), []byte(tinyProgram), 0o600))
	check(t, b.ensure(t.Context(), &progress))
}

func TestCacheDir(t *testing.T) {
	user := func() (string, error) { return "/home/a/.cache", nil }
	none := func() (string, error) { return "", errors.New("no home") }
	tests := []struct {
		name, override string
		user           func() (string, error)
		want, wantErr  string
	}{
		{"default", "", user, "/home/a/.cache/joist/controlplane", ""},
		{"override", "/big", none, "/big/controlplane", ""},
		{"no home", "", none, "", "set JOIST_CACHE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := cacheDir(tt.override, tt.user)
			if got != tt.want || (tt.wantErr != "") != (err != nil) || (err != nil && !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestForeignAssets checks that the error for kubebuilder's folder lists the missing
// files.
func TestForeignAssets(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{etcd, apiserver, "kubectl"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	_, err := Build(t.Context(), new(syncBuilder))
	if err == nil || !strings.Contains(err.Error(), "lacks kube-controller-manager, kube-scheduler:") {
		t.Errorf("got %v, want the names of the missing programs", err)
	}
	for _, name := range []string{controllerManager, scheduler} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	if got, err := Build(t.Context(), new(syncBuilder)); err != nil || got != dir {
		t.Errorf("got %s, %v", got, err)
	}
	_, err = Start(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), "lacks kwok, kwok-stages.yaml:") {
		t.Errorf("got %v, want kwok as missing", err)
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		name, output string
		size         int
		want         string
	}{
		{"short", "a\nb\n", 10, "a\nb\n"},
		{"from the start of a line", "first\nsecond\nthird\n", 9, "third\n"},
		{"one long line", "abcdef", 3, "def"},
		{"empty", "", 3, ""},
	}
	for _, tt := range tests {
		if got := string(tail([]byte(tt.output), tt.size)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A syncBuilder collects the output of several goroutines.
type syncBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
