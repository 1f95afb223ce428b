package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

func TestCheckOptions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options MakeOptions
		want    string // part of the error
	}{
		{"loopback", MakeOptions{Version: "v0.1.0", Registry: "127.0.0.1:5000/joist"}, ""},
		{"IPv6", MakeOptions{Version: "v0.1.0-rc.1", Registry: "[::1]:5000"}, ""},
		{"published", MakeOptions{Version: "v0.1.0", Registry: "ghcr.io/joist-autoscaler", Publish: true}, ""},
		{"published by mistake", MakeOptions{Version: "v0.1.0", Registry: "ghcr.io/joist-autoscaler"}, "ghcr.io is not on loopback"},
		{"a name that begins like loopback", MakeOptions{Version: "v0.1.0", Registry: "127.0.0.1.example.com"}, "not on loopback"},
		{"no v", MakeOptions{Version: "0.1.0", Registry: "127.0.0.1:5000"}, `"0.1.0" is not like v0.1.0`},
		{"no registry", MakeOptions{Version: "v0.1.0"}, "no registry is set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.options.check()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("check returned %v, want %q", err, tt.want)
			}
		})
	}
}

func TestChangelogSection(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - 2026-12-01\n\n- second\n\n## [0.1.0] - 2026-11-24\n\n- first\n\n[0.1.0]: https://example.com\n"
	for title, want := range map[string]string{"Unreleased": "- new\n", "0.2.0": "- second\n", "0.3.0": ""} {
		if got := section(changelog, title); got != want {
			t.Errorf("the section %s is %q, want %q", title, got, want)
		}
	}
}

// TestBuildFlags compares the flags of goreleaser and ko with those of all other builds.
func TestBuildFlags(t *testing.T) {
	flags := read(t, ".ci/flags")
	found := regexp.MustCompile(`readonly build_tags=(\S+)`).FindStringSubmatch(flags)
	if found == nil {
		t.Fatal(".ci/flags sets no build_tags")
	}
	tags := found[1]
	stamped := regexp.MustCompile(`-X \$build_package\.(\w+)=`).FindAllStringSubmatch(flags, -1)
	if len(stamped) != 3 {
		t.Fatalf(".ci/flags stamps %d variables, not version, commit and date", len(stamped))
	}
	var files struct {
		Builds []struct {
			ID                        string
			Env, Flags, Tags, Ldflags []string
		}
	}
	decode(t, ".goreleaser.yaml", &files)
	var images struct {
		DefaultEnv     []string `yaml:"defaultEnv"`
		DefaultFlags   []string `yaml:"defaultFlags"`
		DefaultLdflags []string `yaml:"defaultLdflags"`
	}
	decode(t, ".ko.yaml", &images)
	check := func(what string, environ, flags, ldflags []string) {
		t.Helper()
		if want := []string{"GOWORK=off", "CGO_ENABLED=0"}; !slices.Equal(environ, want) {
			t.Errorf("%s has the environment %v, want %v", what, environ, want)
		}
		if want := []string{"-trimpath", "-tags=" + tags}; !slices.Equal(flags, want) {
			t.Errorf("%s has the flags %v, want %v", what, flags, want)
		}
		linked := strings.Join(ldflags, " ")
		if !strings.HasPrefix(linked, "-s -w ") {
			t.Errorf("%s links with %s, without -s -w", what, linked)
		}
		for _, variable := range stamped {
			if !strings.Contains(linked, "-X github.com/joist-autoscaler/joist/shared/host/build."+variable[1]+"=") {
				t.Errorf("%s does not stamp %s", what, variable[1])
			}
		}
	}
	if len(files.Builds) != 7 {
		t.Errorf("goreleaser builds %d programs, not the command, five functions and spotrole", len(files.Builds))
	}
	for _, build := range files.Builds {
		check("the build "+build.ID+" of goreleaser", build.Env, append(build.Flags, "-tags="+strings.Join(build.Tags, ",")), build.Ldflags)
	}
	check("ko", images.DefaultEnv, images.DefaultFlags, images.DefaultLdflags)
}

func TestConfigLimitsPlatforms(t *testing.T) {
	w := &work{MakeOptions: MakeOptions{Repository: root, Into: "/out", Platforms: []string{"linux/amd64", "darwin/arm64"}}, scratch: t.TempDir()}
	path, err := w.writeConfig()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Dist   string
		Builds []struct{ Targets []string }
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if want := []string{"linux_amd64", "darwin_arm64"}; config.Dist != "/out" || !slices.Equal(config.Builds[0].Targets, want) {
		t.Errorf("dist is %s, and the command's targets are %v, want %v", config.Dist, config.Builds[0].Targets, want)
	}
	for _, function := range config.Builds[1:] {
		if want := []string{"linux_arm64", "linux_amd64"}; !slices.Equal(function.Targets, want) {
			t.Errorf("the targets of a function are %v, want %v", function.Targets, want)
		}
	}
}

// TestSetImages checks that only the three values of the real chart change.
func TestSetImages(t *testing.T) {
	before := read(t, "deploy/charts/joist/values.yaml")
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	images := []Artifact{{Name: "joist-watcher", Digest: "sha256:w"}, {Name: "joist-lifecycle", Digest: "sha256:l"}, {Name: "joist-planner", Digest: "sha256:p"}}
	if err := setImages(file, "ghcr.io/other", images); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := string(text)
	for _, want := range []string{`repository: ghcr.io/other`, `digest: "sha256:w"`, `digest: "sha256:l"`} {
		if strings.Count(after, want) != 1 {
			t.Errorf("the values have not exactly one %s", want)
		}
	}
	after = regexp.MustCompile(`digest: "sha256:."`).ReplaceAllString(after, `digest: ""`)
	repository := regexp.MustCompile(`repository: .*`)
	before, after = repository.ReplaceAllString(before, ""), repository.ReplaceAllString(after, "")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("other lines of the values changed:\n%s", diff)
	}
}

func TestSetVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "Chart.yaml")
	if err := os.WriteFile(file, []byte(read(t, "deploy/charts/joist/Chart.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := setVersion(file, "ghcr.io/other", "v7.8.9-rc.1"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: ghcr.io/other/joist-watcher:v7.8.9-rc.1\n", "image: ghcr.io/other/joist-lifecycle:v7.8.9-rc.1\n", `prerelease: "true"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("Chart.yaml lacks %s:\n%s", want, text)
		}
	}
}

func TestVerifyChecksumsFindsChanges(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("joist.tar.gz", "content")
	digest, err := hashFile(filepath.Join(folder, "joist.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	write("checksums.txt", strings.TrimPrefix(digest, "sha256:")+"  joist.tar.gz\n")
	w := &work{MakeOptions: MakeOptions{Into: folder, Out: t.Output()}}
	w.made.Artifacts = []Artifact{{Kind: KindArchive, Name: "joist.tar.gz", Path: "joist.tar.gz", Digest: digest}}
	if err := w.verifyChecksums(t.Context()); err != nil {
		t.Errorf("the checksums are right: %v", err)
	}
	write("checksums.txt", "")
	if err := w.verifyChecksums(t.Context()); err == nil {
		t.Error("a file that checksums.txt does not list was accepted")
	}
	write("joist.tar.gz", "other")
	if err := w.verifyChecksums(t.Context()); err == nil {
		t.Error("a changed file was accepted")
	}
}

// TestBaseImage checks that the base image in a registry on loopback has both platforms and
// the user of distroless.
func TestBaseImage(t *testing.T) {
	address, err := StartRegistry(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &work{MakeOptions: MakeOptions{Registry: address + "/joist-autoscaler"}}
	base, err := w.pushBase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(base)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, listed := range manifest.Manifests {
		platforms = append(platforms, listed.Platform.String())
		image, err := index.Image(listed.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if config, err := image.ConfigFile(); err != nil || config.Config.User != "65532" {
			t.Errorf("the base image for %s has the configuration %+v, %v; want the user 65532", listed.Platform, config, err)
		}
	}
	if !slices.Equal(platforms, imagePlatforms) {
		t.Errorf("the base image has the platforms %v, want %v", platforms, imagePlatforms)
	}
	if _, err := StartRegistry(t.Context(), "0.0.0.0:0"); err == nil {
		t.Error("a registry without authentication was started outside loopback")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), into); err != nil {
		t.Fatalf("decoding %s: %v", path, err)
	}
}
