package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
)

// PreviousRef is the git reference of the release that runs next to this version, by default the last tag.
const PreviousRef = "JOIST_PREVIOUS"

// BuildPrevious compiles every service as of PreviousRef and returns the commit and the folder; the folder is empty if
// there is no such reference.
func BuildPrevious(ctx context.Context) (commit, dir string, err error) {
	ref := os.Getenv(PreviousRef)
	if ref == "" {
		tag, err := tool.Git(ctx, Root, "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD")
		if err != nil {
			return "", "", nil // There was no release yet.
		}
		ref = tag
	}
	if commit, err = tool.Git(ctx, Root, "rev-parse", "--short", ref+"^{commit}"); err != nil {
		return "", "", err
	}
	source, err := filepath.Abs(filepath.Join(Root, ".cache", "previous", commit))
	if err != nil {
		return "", "", fmt.Errorf("finding a folder for commit %s: %w", commit, err)
	}
	lock, err := lockFolder(source)
	if err != nil {
		return "", "", err
	}
	defer lock.Close()
	if err := tool.UnpackCommit(ctx, Root, commit, source); err != nil {
		return "", "", err
	}
	into := filepath.Join(source, "bin")
	for _, service := range Services() {
		if err := installBinary(source, service, into); err != nil {
			return "", "", err
		}
	}
	return commit, into, nil
}

// Services returns the names of all services.
func Services() []string { return append(append([]string{}, inCluster...), outside...) }
