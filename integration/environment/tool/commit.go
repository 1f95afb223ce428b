package tool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git runs git in a repository and returns what it prints.
func Git(ctx context.Context, repository string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = repository
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// UnpackCommit writes shared and services as of a commit of a repository into a folder, which it creates.
func UnpackCommit(ctx context.Context, repository, commit, into string) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return fmt.Errorf("finding a folder for commit %s: %w", commit, err)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return fmt.Errorf("creating a folder for commit %s: %w", commit, err)
	}
	archive := filepath.Join(into, "source.tar")
	if _, err := Git(ctx, repository, "archive", "--output", archive, commit, "shared", "services"); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-x", "-f", archive, "-C", into).CombinedOutput(); err != nil {
		return fmt.Errorf("unpacking commit %s: %w\n%s", commit, err, out)
	}
	return nil
}
