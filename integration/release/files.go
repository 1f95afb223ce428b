package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// readCommit reads the commit that is released and its date.
func (w *work) readCommit(ctx context.Context) error {
	out, err := w.run(ctx, nil, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}
	commit, date, _ := strings.Cut(strings.TrimSpace(out), " ")
	w.made.Commit = commit
	w.date, err = time.Parse(time.RFC3339, date)
	return err
}

// makeFiles makes the files of the GitHub release with goreleaser.
func (w *work) makeFiles(ctx context.Context) error {
	config, err := w.writeConfig()
	if err != nil {
		return err
	}
	notes, err := w.writeNotes()
	if err != nil {
		return err
	}
	args := []string{"release", "--clean", "--parallelism=2", "--config=" + config, "--release-notes=" + notes}
	if !w.Publish {
		// The tag need not exist, nor the tree be clean.
		args = append(args, "--skip=publish,announce,validate")
	}
	// A clone without a remote releases too, unpublished.
	environ := append(w.signingEnviron(), "RELEASE_INTO="+w.Into, "GORELEASER_CURRENT_TAG="+w.Version, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=remote.origin.url", "GIT_CONFIG_VALUE_0="+source)
	if _, err := w.run(ctx, environ, "goreleaser", args...); err != nil {
		return err
	}
	return w.listFiles()
}

// union returns the targets of goreleaser and the platforms that are not among them.
func union(targets, platforms []string) []string {
	out := slices.Clone(targets)
	for _, platform := range platforms {
		if target := strings.ReplaceAll(platform, "/", "_"); !slices.Contains(out, target) {
			out = append(out, target)
		}
	}
	return out
}

// formatTargets writes platforms as goreleaser's configuration has them: [linux_amd64, linux_arm64].
func formatTargets(platforms []string) string {
	return strings.ReplaceAll("["+strings.Join(platforms, ", ")+"]", "/", "_")
}

// writeConfig writes .goreleaser.yaml with the folder of the artifacts and the platforms.
func (w *work) writeConfig() (string, error) {
	text, err := os.ReadFile(filepath.Join(w.Repository, ".goreleaser.yaml"))
	if err != nil {
		return "", fmt.Errorf("reading the configuration of goreleaser: %w", err)
	}
	var config struct {
		Builds []struct {
			ID      string   `yaml:"id"`
			Targets []string `yaml:"targets"`
		} `yaml:"builds"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("decoding the configuration of goreleaser: %w", err)
	}
	for _, build := range config.Builds {
		if len(w.Platforms) == 0 {
			break
		}
		platforms := w.Platforms
		if build.ID != "cli" {
			// These platforms are added to that of Lambda, so that the functions also run on this machine.
			platforms = union(build.Targets, linuxOnly(w.Platforms))
		}
		all, some := "targets: "+formatTargets(build.Targets), "targets: "+formatTargets(platforms)
		id := strings.Index(string(text), "id: "+build.ID)
		if id < 0 || !strings.Contains(string(text[id:]), all) {
			return "", fmt.Errorf("the configuration of goreleaser has no build %s with %s", build.ID, all)
		}
		text = append(text[:id:id], strings.Replace(string(text[id:]), all, some, 1)...)
	}
	path := filepath.Join(w.scratch, "goreleaser.yaml")
	return path, os.WriteFile(path, append(text, "\ndist: "+w.Into+"\n"...), 0o600)
}

// writeNotes writes the release notes: the version's section of CHANGELOG.md. The section
// Unreleased serves a release that is not published.
func (w *work) writeNotes() (string, error) {
	text, err := os.ReadFile(filepath.Join(w.Repository, "CHANGELOG.md"))
	if err != nil {
		return "", fmt.Errorf("reading the changelog: %w", err)
	}
	notes := section(string(text), strings.TrimPrefix(w.Version, "v"))
	if notes == "" && !w.Publish {
		notes = section(string(text), "Unreleased")
	}
	if notes == "" {
		return "", fmt.Errorf("CHANGELOG.md has no section for %s: rename the section Unreleased", w.Version)
	}
	path := filepath.Join(w.scratch, "notes.md")
	return path, os.WriteFile(path, []byte(notes), 0o600)
}

// section returns the text below the heading "## [title]", up to the next one.
func section(changelog, title string) string {
	_, after, found := strings.Cut(changelog, "\n## ["+title+"]")
	if !found {
		return ""
	}
	_, body, _ := strings.Cut(after, "\n")
	body, _, _ = strings.Cut(body, "\n## [")
	return strings.TrimSpace(body) + "\n"
}

// listFiles adds the files that goreleaser lists.
func (w *work) listFiles() error {
	text, err := os.ReadFile(filepath.Join(w.Into, "artifacts.json"))
	if err != nil {
		return fmt.Errorf("reading goreleaser's list: %w", err)
	}
	var listed []struct {
		Name, Path, Type string
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return fmt.Errorf("decoding goreleaser's list: %w", err)
	}
	kinds := map[string]ArtifactKind{
		"Archive": KindArchive, "SBOM": KindSBOM, "Checksum": KindChecksums, "Signature": KindSignature,
		"Krew Plugin Manifest": KindManifest, "Homebrew Cask": KindManifest,
	}
	for _, file := range listed {
		kind, known := kinds[file.Type]
		if !known {
			continue // binaries, which are in the archives, and metadata
		}
		if strings.Contains(file.Name, "_lambda_") && kind == KindArchive {
			kind = KindFunction
		}
		path := file.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(w.Repository, path)
		}
		if err := w.addFile(kind, path); err != nil {
			return err
		}
	}
	if len(w.made.Find(KindArchive)) == 0 || len(w.made.Find(KindFunction)) == 0 {
		return errors.New("goreleaser made no archive or no function")
	}
	slices.SortFunc(w.made.Artifacts, func(a, b Artifact) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// addFile adds a file of the folder to the list.
func (w *work) addFile(kind ArtifactKind, path string) error {
	digest, err := hashFile(path)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(w.Into, path)
	if err != nil {
		return fmt.Errorf("finding %s in %s: %w", path, w.Into, err)
	}
	w.made.Artifacts = append(w.made.Artifacts, Artifact{Kind: kind, Name: filepath.Base(path), Digest: digest, Path: relative})
	return nil
}

// hashFile returns sha256:… of a file.
func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing a file: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}
