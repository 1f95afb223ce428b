package modules

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// git runs git in a folder, with more variables in its environment.
type git struct {
	dir     string
	environ []string
}

// run returns git's output without the last line break.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir, command.Env = g.dir, append(os.Environ(), g.environ...)
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("git %s in %s: %w\n%s", args[0], g.dir, err, errors.String())
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// checkRelease checks that HEAD can be released with the version.
func (g git) checkRelease(ctx context.Context, version string) (ModuleRelease, error) {
	changes, err := g.run(ctx, "status", "--porcelain")
	if err != nil {
		return ModuleRelease{}, err
	}
	if changes != "" {
		return ModuleRelease{}, fmt.Errorf("the work tree has changes that no commit contains, and a release contains commits only. Try: commit or remove them:\n%s", changes)
	}
	source, err := g.run(ctx, "rev-parse", "HEAD")
	if err != nil {
		return ModuleRelease{}, err
	}
	newest, tags, err := g.newestVersion(ctx)
	if err != nil {
		return ModuleRelease{}, err
	}
	if version == "" {
		version = nextDryRun(newest, source)
	}
	if err := checkVersion(version); err != nil {
		return ModuleRelease{}, err
	}
	for _, tag := range tags {
		if tag == version || strings.HasSuffix(tag, "/"+version) {
			return ModuleRelease{}, fmt.Errorf("the tag %s exists; a released version never changes. Try: a version above %s", tag, newest)
		}
	}
	if newest != "" && semver.Compare(version, newest) < 0 {
		return ModuleRelease{}, fmt.Errorf("version %s is not above %s, the newest tag. Try: a version above it", version, newest)
	}
	return ModuleRelease{Version: version, Source: source}, nil
}

// checkVersion checks that the version can be a tag of a Go module without a major version in its path.
func checkVersion(version string) error {
	switch major := semver.Major(version); {
	case semver.Canonical(version) != version:
		return fmt.Errorf("version %q is not of the form v1.2.3 or v1.2.3-rc.1 (https://semver.org, with a v and without build metadata)", version)
	case major != "v0" && major != "v1":
		return fmt.Errorf("version %s needs module paths that end in /%s (https://go.dev/ref/mod#major-version-suffixes). Try: change them before the release", version, major)
	default:
		return nil
	}
}

// newestVersion returns the highest version of all tags, or nothing, and the tags.
func (g git) newestVersion(ctx context.Context) (newest string, tags []string, err error) {
	out, err := g.run(ctx, "tag", "--list")
	if err != nil {
		return "", nil, err
	}
	tags = strings.Fields(out)
	var versions []string
	for _, tag := range tags {
		if version := tag[strings.LastIndex(tag, "/")+1:]; semver.IsValid(version) {
			versions = append(versions, version)
		}
	}
	if len(versions) > 0 {
		newest = slices.MaxFunc(versions, semver.Compare)
	}
	return newest, tags, nil
}

// nextDryRun returns a version above the newest that no release and no other commit has.
func nextDryRun(newest, commit string) string {
	var major, minor int
	if newest != "" {
		// The error is that of a version without a patch number, which is fine.
		_, _ = fmt.Sscanf(newest, "v%d.%d", &major, &minor)
	}
	// With the g a commit of digits is no number, which must not begin with 0.
	return fmt.Sprintf("v%d.%d.0-dryrun.g%s", major, minor+1, commit[:min(12, len(commit))])
}

// commitEnvironment makes commits and tags repeatable: they have the person and the time of the released commit.
func (g git) commitEnvironment(ctx context.Context, source string) ([]string, error) {
	out, err := g.run(ctx, "log", "-1", "--format=%cn%n%ce%n%cI", source)
	if err != nil {
		return nil, err
	}
	var environ []string
	for i, value := range strings.Split(out, "\n") {
		name := []string{"NAME", "EMAIL", "DATE"}[i]
		environ = append(environ, "GIT_AUTHOR_"+name+"="+value, "GIT_COMMITTER_"+name+"="+value)
	}
	return environ, nil
}

// commitRelease makes or replaces the release commit.
func (g git) commitRelease(ctx context.Context, r ModuleRelease) error {
	if _, err := g.run(ctx, "reset", "--quiet", "--soft", r.Source); err != nil {
		return err
	}
	if _, err := g.run(ctx, "add", "--all"); err != nil {
		return err
	}
	_, err := g.run(ctx, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "Require the modules of "+r.Version,
		"-m", "The modules require each other at this version instead of replacing each other by folders, so that go install works.")
	return err
}

func (g git) tagModules(ctx context.Context, modules []Module, version string) error {
	for _, m := range modules {
		if _, err := g.run(ctx, "tag", "--force", m.Tag(version)); err != nil {
			return err
		}
	}
	return nil
}

// Tag adds the release commit and a tag per module to the repository. It pushes nothing. The tag of all other
// artifacts, such as v0.1.0, is not a module's: a maintainer signs it, on the released commit.
func (r ModuleRelease) Tag(ctx context.Context, repository string) error {
	args := []string{"fetch", "--quiet", "--no-tags", r.Clone}
	for _, tag := range r.Tags() {
		args = append(args, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	_, err := git{dir: repository}.run(ctx, args...)
	return err
}

// Tags are the modules' tags, on the release commit.
func (r ModuleRelease) Tags() []string {
	var tags []string
	for _, m := range r.Modules {
		tags = append(tags, m.Tag(r.Version))
	}
	return tags
}
