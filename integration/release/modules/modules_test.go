package modules

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// newRepository commits the files of testdata/repository.txtar.
func newRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	archive, err := txtar.ParseFile("testdata/repository.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		writeText(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	runGit(t, dir, "init", "--quiet", "--initial-branch=main")
	commitAll(t, dir)
	return dir
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git{dir: dir}.run(t.Context(), append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	runGit(t, dir, "add", "--all")
	runGit(t, dir, "commit", "--quiet", "--message", "Change files")
}

// useEmptyModuleCache keeps the test from the network and from the user's module cache.
func useEmptyModuleCache(t *testing.T) string {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "cache")
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	t.Cleanup(func() {
		if err := removeDownloads(cache); err != nil {
			t.Error(err)
		}
	})
	return cache
}

// TestRelease makes a release, builds and installs it, and adds its tags to the repository.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs git and the go command")
	}
	cache := useEmptyModuleCache(t)
	repository := newRepository(t)
	source := runGit(t, repository, "rev-parse", "HEAD")
	r, err := Cut(t.Context(), CutOptions{Repository: repository, Version: "v0.1.0", Scratch: filepath.Join(t.TempDir(), "scratch")})
	if err != nil {
		t.Fatal(err)
	}
	checkReleaseCommit(t, r, source)
	for _, m := range r.Modules {
		if err := r.Build(t.Context(), m); err != nil {
			t.Error(err)
		}
	}

	gobin := t.TempDir()
	if err := r.Install(t.Context(), "services/cli/cmd/joist", gobin); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(gobin, "joist")).Output()
	if err != nil || string(out) != "v0.1.0 hello\n" {
		t.Errorf("the installed command prints %q (%v)", out, err)
	}

	if tags := runGit(t, repository, "tag", "--list"); tags != "" {
		t.Errorf("Cut made the tags %q in the repository", tags)
	}
	if err := r.Tag(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{}
	for name := range strings.FieldsSeq(runGit(t, repository, "tag", "--list")) {
		tags[name] = runGit(t, repository, "rev-parse", name)
	}
	want := map[string]string{"shared/v0.1.0": r.Commit, "services/cli/v0.1.0": r.Commit, "services/worker/v0.1.0": r.Commit}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Error(diff)
	}
	checkRefused(t, repository, "v0.1.0", "the tag services/cli/v0.1.0 exists")
	checkRefused(t, repository, "v0.0.9", "version v0.0.9 is not above v0.1.0")

	if left := findVersions(t, cache); len(left) == 0 {
		t.Error("the release is not in the module cache: Clean has nothing to remove")
	}
	if err := r.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := findVersions(t, cache); len(left) > 0 {
		t.Errorf("Clean left %q", left)
	}
}

// findVersions returns the files of the release in the module cache.
func findVersions(t *testing.T, cache string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*@v0.1.0", "*/*@v0.1.0"} {
		paths, err := filepath.Glob(filepath.Join(cache, home, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	for _, pattern := range []string{"*/@v/*", "*/*/@v/*"} {
		paths, err := filepath.Glob(filepath.Join(cache, "cache", "download", home, pattern))
		if err != nil {
			t.Fatal(err)
		}
		// The go command keeps its locks.
		found = append(found, slices.DeleteFunc(paths, func(path string) bool { return filepath.Ext(path) == ".lock" })...)
	}
	return found
}

// checkReleaseCommit checks the commit's parent, its go.mod files, and that equal commits give equal releases.
func checkReleaseCommit(t *testing.T, r ModuleRelease, source string) {
	t.Helper()
	if parents := runGit(t, r.Clone, "log", "-1", "--format=%P", r.Commit); parents != source {
		t.Errorf("the release commit has the parents %q, want %s", parents, source)
	}
	var dirs []string
	for _, m := range r.Modules {
		dirs = append(dirs, m.Dir)
	}
	if want := []string{"shared", "services/worker", "services/cli"}; !slices.Equal(dirs, want) {
		t.Errorf("released %q, want %q", dirs, want)
	}
	for file, want := range map[string][]string{
		"services/cli/go.mod": {"services/worker v0.1.0\n", "shared v0.1.0 // indirect\n"},
		"services/cli/go.sum": {"services/worker v0.1.0 h1:", "services/worker v0.1.0/go.mod h1:", "shared v0.1.0 h1:", "shared v0.1.0/go.mod h1:"},
		"integration/go.mod":  {"shared v0.1.0\n", "shared => ../shared"},
	} {
		text := runGit(t, r.Clone, "show", r.Commit+":"+file)
		for _, part := range want {
			if !strings.Contains(text+"\n", part) {
				t.Errorf("%s has no %q:\n%s", file, part, text)
			}
		}
		if strings.Contains(text, "replace") != strings.HasPrefix(file, "integration") {
			t.Errorf("the replace directives of %s are wrong:\n%s", file, text)
		}
	}
	for _, m := range r.Modules {
		if _, err := os.Stat(filepath.Join(r.Proxy, m.Path, "@v", r.Version+".zip")); err != nil {
			t.Error(err)
		}
	}
}

func checkRefused(t *testing.T, repository, version, want string) {
	t.Helper()
	_, err := git{dir: repository}.checkRelease(t.Context(), version)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("version %q: got error %v, want %q", version, err, want)
	}
}

// TestRefusals: a release that cannot work fails before anything is made.
func TestRefusals(t *testing.T) {
	repository := newRepository(t)
	for version, want := range map[string]string{
		"0.1.0":       "is not of the form",
		"v0.1":        "is not of the form",
		"v0.1.0+meta": "is not of the form",
		"v2.0.0":      "needs module paths that end in /v2",
	} {
		checkRefused(t, repository, version, want)
	}
	writeText(t, filepath.Join(repository, "new.txt"), "")
	checkRefused(t, repository, "v0.1.0", "?? new.txt")
}

// TestFailures: modules that go install or another module could not use fail.
func TestFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs git and the go command")
	}
	for _, test := range []struct{ name, file, text, want string }{
		{
			"a replaced library", "services/worker/go.mod",
			"module github.com/joist-autoscaler/joist/services/worker\n\nreplace example.com/fork => ../fork\n",
			"services/worker/go.mod replaces example.com/fork",
		},
		{
			"an unreleased requirement", "shared/go.mod",
			"module github.com/joist-autoscaler/joist/shared\n\nrequire github.com/joist-autoscaler/joist/integration v0.0.0\n",
			"requires github.com/joist-autoscaler/joist/integration, which is not released",
		},
		{
			"a circle", "shared/go.mod",
			"module github.com/joist-autoscaler/joist/shared\n\nrequire github.com/joist-autoscaler/joist/services/worker v0.0.0\n",
			"require each other in a circle",
		},
		{"a file name that zips cannot contain", "shared/a:b.txt", "text", "malformed file path"},
		{"a file for go:embed outside the module", "shared/greeting/.gitignore", "*\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			useEmptyModuleCache(t)
			repository := newRepository(t)
			writeText(t, filepath.Join(repository, test.file), test.text)
			if test.want == "" {
				runGit(t, repository, "rm", "--quiet", "--cached", "-r", "shared/greeting/data")
				test.want = "pattern data/greeting.txt: no matching files found"
			}
			commitAll(t, repository)
			err := cutAndBuild(t.Context(), CutOptions{Repository: repository, Version: "v0.1.0", Scratch: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func cutAndBuild(ctx context.Context, o CutOptions) error {
	r, err := Cut(ctx, o)
	if err != nil {
		return err
	}
	for _, m := range r.Modules {
		if err := r.Build(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// TestNextDryRun: the version of a dry run is a valid version above the newest, also for a commit of digits.
func TestNextDryRun(t *testing.T) {
	got := map[string]string{}
	for _, newest := range []string{"", "v0.1.0", "v1.9.3-rc.1"} {
		got[newest] = nextDryRun(newest, "0123456789012345")
		if err := checkVersion(got[newest]); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{"": "v0.1.0-dryrun.g012345678901", "v0.1.0": "v0.2.0-dryrun.g012345678901", "v1.9.3-rc.1": "v1.10.0-dryrun.g012345678901"}
	if !maps.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
