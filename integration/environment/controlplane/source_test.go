package controlplane

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

func TestCacheKey(t *testing.T) {
	base := fstest.MapFS{
		"main.go": {Data: []byte("package main")},
		"kwok.go": {Data: []byte("package main // kwok")},
		"go.mod":  {Data: []byte("module m")},
		"go.sum":  {Data: []byte("sums")},
		"README":  {Data: []byte("read me")},
	}
	with := func(name, content string) fstest.MapFS {
		changed := maps.Clone(base)
		changed[name] = &fstest.MapFile{Data: []byte(content)}
		return changed
	}
	key := func(source fstest.MapFS, version, platform string, flags ...string) string {
		key, err := cacheKey(source, version, platform, flags)
		check(t, err)
		return key
	}
	want := key(base, "go1.26", "linux/amd64", "-trimpath")
	tests := []struct {
		name string
		got  string
		same bool
	}{
		{"again", key(base, "go1.26", "linux/amd64", "-trimpath"), true},
		{"another text file", key(with("README", "changed"), "go1.26", "linux/amd64", "-trimpath"), true},
		{"main.go", key(with("main.go", "changed"), "go1.26", "linux/amd64", "-trimpath"), false},
		{"a new source", key(with("new.go", "package main"), "go1.26", "linux/amd64", "-trimpath"), false},
		{"go.mod", key(with("go.mod", "changed"), "go1.26", "linux/amd64", "-trimpath"), false},
		{"go.sum", key(with("go.sum", "changed"), "go1.26", "linux/amd64", "-trimpath"), false},
		{"compiler", key(base, "go1.27", "linux/amd64", "-trimpath"), false},
		{"platform", key(base, "go1.26", "darwin/arm64", "-trimpath"), false},
		{"flags", key(base, "go1.26", "linux/amd64"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if (tt.got == want) != tt.same {
				t.Errorf("got key %s, want %s: same %t", tt.got, want, tt.same)
			}
		})
	}
}

func TestCacheKeyWithoutSums(t *testing.T) {
	_, err := cacheKey(fstest.MapFS{"go.mod": {}}, "", "", nil)
	if err == nil || !strings.Contains(err.Error(), "go.sum") {
		t.Errorf("got %v, want an error with go.sum", err)
	}
}

func TestFindSource(t *testing.T) {
	here, err := os.Getwd()
	check(t, err)
	for _, from := range []string{here, filepath.Join(here, "..", "..")} {
		if got, err := findSource(from); err != nil || got != filepath.Join(here, "binary") {
			t.Errorf("from %s: got %s, %v", from, got, err)
		}
	}
	if got, err := findSource(t.TempDir()); err == nil || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
		t.Errorf("outside of the repository: got %s, %v", got, err)
	}
}

// TestBuildFlags reads the real go.mod, so that a change of its format cannot lose the
// version.
func TestBuildFlags(t *testing.T) {
	goMod, err := os.ReadFile("binary/go.mod")
	check(t, err)
	flags, err := buildFlags(goMod)
	check(t, err)
	golden.Compare(t, "testdata/buildflags.golden", strings.ReplaceAll(strings.Join(flags, "\n"), " -X ", "\n-X ")+"\n")

	if _, err := buildFlags([]byte("module m\n")); err == nil {
		t.Error("a go.mod without Kubernetes gave build flags")
	}
}
