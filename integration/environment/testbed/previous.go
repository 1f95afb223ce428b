package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// PreviousRef is the git reference of the release that runs next to this version, by default the last tag.
const PreviousRef = "JOIST_PREVIOUS"

// BuildPrevious compiles every service as of PreviousRef and returns the commit and the folder; the folder is empty if
// there is no such reference.
func BuildPrevious() (commit, dir string, err error) {
	ref := os.Getenv(PreviousRef)
	if ref == "" {
		tag, err := git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD")
		if err != nil {
			return "", "", nil // There was no release yet.
		}
		ref = tag
	}
	if commit, err = git("rev-parse", "--short", ref+"^{commit}"); err != nil {
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
	archive := filepath.Join(source, "source.tar")
	if _, err := git("archive", "--output", archive, commit, "shared", "services"); err != nil {
		return "", "", err
	}
	if out, err := exec.Command("tar", "-x", "-f", archive, "-C", source).CombinedOutput(); err != nil { //nolint:noctx,gosec // it unpacks a commit of this repository into .cache
		return "", "", fmt.Errorf("unpacking commit %s: %w\n%s", commit, err, out)
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

func git(args ...string) (string, error) {
	command := exec.Command("git", args...) //nolint:noctx,gosec // the reference is the developer's own
	command.Dir = Root
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
