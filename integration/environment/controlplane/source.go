package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// sourceFromRoot is the nested module's path in the repository.
const sourceFromRoot = "integration/environment/controlplane/binary"

// findSource returns the nested module's folder. It walks up from workDir: a test's working
// folder is its package. Binaries built with -trimpath do not know where their sources are.
func findSource(workDir string) (string, error) {
	for dir := workDir; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, filepath.FromSlash(sourceFromRoot))
		if isFile(filepath.Join(candidate, "go.mod")) {
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the control plane's sources: no %s above %s: run inside a checkout of the repository, or set KUBEBUILDER_ASSETS to a folder with the binaries",
				sourceFromRoot, workDir)
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// cacheKey identifies one build: equal keys mean equal executables. It covers the
// module's own files (go.sum pins every dependency), the compiler and the flags.
func cacheKey(source fs.FS, goVersion, platform string, flags []string) (string, error) {
	names, err := fs.Glob(source, "*.go")
	if err != nil {
		return "", fmt.Errorf("listing the control plane's sources: %w", err)
	}
	names = append(names, "go.mod", "go.sum")
	slices.Sort(names)

	hash := sha256.New()
	for _, name := range names {
		content, err := fs.ReadFile(source, name)
		if err != nil {
			return "", fmt.Errorf("reading the control plane's sources: %w", err)
		}
		// The length separates the contents of consecutive files.
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	fmt.Fprintf(hash, "%s %s\n%s\n", goVersion, platform, strings.Join(flags, "\n"))
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

var kubernetesRequirement = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)

// buildFlags returns the arguments of `go build`. Kubernetes's release scripts set the
// version with the linker; without it the API server reports v0.0.0-master, which clients
// that parse the version reject.
func buildFlags(goMod []byte) ([]string, error) {
	match := kubernetesRequirement.FindSubmatch(goMod)
	if match == nil {
		return nil, errors.New("reading the control plane's go.mod: it requires no k8s.io/kubernetes, whose version the API server should report")
	}
	stamps := []string{
		"gitVersion=" + string(match[1]),
		"gitMajor=" + string(match[2]),
		"gitMinor=" + string(match[3]),
		"gitTreeState=archive",
		"gitCommit=" + string(match[1]),
		"buildDate=1970-01-01T00:00:00Z", // a real date would change every build
	}
	ldflags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, stamp := range stamps {
			ldflags = append(ldflags, "-X", pkg+"."+stamp)
		}
	}
	return []string{"-trimpath", "-ldflags=" + strings.Join(ldflags, " ")}, nil
}
