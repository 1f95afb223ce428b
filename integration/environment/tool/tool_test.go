package tool

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for pkg, want := range map[string]string{
		"helm.sh/helm/v3/cmd/helm":            "helm",
		"github.com/goreleaser/goreleaser/v2": "goreleaser",
		"github.com/google/ko":                "ko",
	} {
		if got := (GoTool{Package: pkg}).Name(); got != want {
			t.Errorf("the program of %s is %s, not %s", pkg, got, want)
		}
	}
}

// A program that is present is not built again: this package does not exist.
func TestBuildKeepsProgram(t *testing.T) {
	repository := t.TempDir()
	program := filepath.Join(repository, ".cache", "bin", "absent-v1.0.0")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := GoTool{Package: "joist.invalid/absent", Version: "v1.0.0"}.Build(t.Context(), repository)
	if err != nil || got != program {
		t.Errorf("Build returned %q, %v; want %q", got, err, program)
	}
}

func TestBuildFailureNamesTool(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	_, err := GoTool{Package: "joist.invalid/absent", Version: "v1.0.0"}.Build(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "building absent v1.0.0") {
		t.Errorf("building a package that does not exist returned %v", err)
	}
}

// Free addresses differ, a program can listen on them, and the system does not choose their ports for connections.
func TestFindFreeAddresses(t *testing.T) {
	found, err := FindFreeAddresses(t.Context(), 3)
	if err != nil || len(found) != 3 {
		t.Fatalf("got %v, %v", found, err)
	}
	for _, at := range found {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if !at.Addr().IsLoopback() {
			t.Errorf("%s is no address of loopback", at)
		}
		if at.Port() >= 32768 {
			t.Errorf("the port of %s may become the port of a connection", at)
		}
	}
}
