package versions

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

var (
	update  = flag.Bool("update", false, "rewrite the examples of the next release")
	release = flag.String("release", "", "freeze the examples as those of this version, such as v0.1.0")
)

// sums is the file with the digest of every file of a release.
const sums = "SHA256SUMS"

// nextFiles returns the examples that the next release freezes: testdata/next, and the messages of package event.
func nextFiles(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := readFiles(os.DirFS("testdata/next"), ".")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range out {
		delete(out, name)
		out[strings.TrimPrefix(name, "./")] = text
	}
	goldens, err := filepath.Glob("../../../shared/event/testdata/v1*/*.json")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no messages in package event: %v", err)
	}
	for _, file := range goldens {
		if out[Messages+filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestNextRelease requires that the examples of the next release are those of today's types: a change of a type is
// seen in its example.
func TestNextRelease(t *testing.T) {
	want := map[string][]byte{"metrics.txt": listMetrics()}
	for form, is := range forms {
		if strings.HasPrefix(string(form), Messages) {
			continue
		}
		text, err := json.MarshalIndent(example(is, string(form), map[reflect.Type]bool{}).Interface(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want[fileOf(form)] = append(text, '\n')
	}
	for name, text := range want {
		file := filepath.Join("testdata/next", filepath.FromSlash(name))
		if *update {
			writeFile(t, file, text)
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v (try: go test ./environment/versions -update)", err)
		}
		if diff := cmp.Diff(string(have), string(text)); diff != "" {
			t.Errorf("%s differs from today's types; after reading the diff: make generate, or go test ./environment/versions -update\n%s", name, diff)
		}
	}
	for name := range nextFiles(t) {
		if !strings.HasPrefix(name, Messages) && !strings.HasPrefix(name, launches) && want[name] == nil {
			t.Errorf("testdata/next/%s is of no form: remove it", name)
		}
	}
}

func writeFile(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// listMetrics returns one line for each metric: its name, kind and labels.
func listMetrics() []byte {
	var lines []string
	for _, m := range metric.Catalogue {
		words := []string{m.Name, string(m.Kind)}
		for _, label := range m.Labels {
			words = append(words, label.Name)
		}
		lines = append(lines, strings.Join(words, " ")+"\n")
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// TestMessagesHaveEveryField requires that each field of a message is in one of its examples: a version knows exactly
// the fields of its examples.
func TestMessagesHaveEveryField(t *testing.T) {
	have, err := fieldsOfFiles(nextFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	for form, is := range forms {
		if !strings.HasPrefix(string(form), Messages) {
			continue
		}
		text, err := json.Marshal(example(is, string(form), map[reflect.Type]bool{}).Interface())
		if err != nil {
			t.Fatal(err)
		}
		want := Fields{}
		want.add(form, text)
		for path, fields := range want {
			for name := range fields {
				if !have[path][name] {
					t.Errorf("no example in shared/event/testdata has %s.%s: add one to v1-further", path, name)
				}
			}
		}
	}
}

// TestTodayReadsReleases requires that today's types read every released example, and the next ones, without losing a
// value: what they write again has every value of the example.
func TestTodayReadsReleases(t *testing.T) {
	all := map[string]map[string][]byte{"next": nextFiles(t)}
	for _, version := range releases(t) {
		all[version] = releaseFiles(t, version)
	}
	for version, files := range all {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			t.Run(version+"/"+name, func(t *testing.T) {
				if name == "metrics.txt" {
					requireMetrics(t, string(files[name]))
					return
				}
				requireReadable(t, name, files[name])
			})
		}
	}
}

// requireReadable requires that today's type of an example reads it and writes all of it again.
func requireReadable(t *testing.T, name string, text []byte) {
	t.Helper()
	form, text, err := parseExample(name, text)
	if err != nil {
		t.Fatal(err)
	}
	is, ok := forms[form]
	if !ok {
		t.Fatalf("%s is of a form that this version does not know: a form is read until nothing of it is left", name)
	}
	value := reflect.New(is)
	if err := json.Unmarshal(text, value.Interface()); err != nil {
		t.Fatal(err)
	}
	if body, ok := reflect.TypeAssert[event.Body](value.Elem()); ok {
		if err := body.Validate(); err != nil {
			t.Errorf("today's consumer rejects it: %v", err)
		}
	}
	again, err := json.Marshal(value.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var before, after any
	if json.Unmarshal(text, &before) != nil || json.Unmarshal(again, &after) != nil {
		t.Fatal("the texts are not JSON")
	}
	for _, lost := range findLost(before, after, string(form)) {
		t.Errorf("%s is lost or read as another value", lost)
	}
}

// findLost returns the paths of the values that a JSON value has and another one lacks.
func findLost(before, after any, path string) []string {
	var out []string
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		for name, value := range before {
			out = append(out, findLost(value, after[name], path+"."+name)...)
		}
	case []any:
		after, _ := after.([]any)
		if len(after) != len(before) {
			return []string{path}
		}
		for i := range before {
			out = append(out, findLost(before[i], after[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if !reflect.DeepEqual(before, after) {
			out = append(out, path)
		}
	}
	return out
}

// requireMetrics requires that every listed metric exists with the same kind and labels.
func requireMetrics(t *testing.T, list string) {
	t.Helper()
	today := strings.Split(string(listMetrics()), "\n")
	for line := range strings.Lines(list) {
		if !slices.Contains(today, strings.TrimSpace(line)) {
			t.Errorf("the metric %q no longer exists as it was: dashboards and alarms of users read it", strings.TrimSpace(line))
		}
	}
}

func releases(t *testing.T) []string {
	t.Helper()
	out, err := ReleasedVersions()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func releaseFiles(t *testing.T, version string) map[string][]byte {
	t.Helper()
	files, err := readFiles(released, releasedDir+"/"+version)
	if err != nil {
		t.Fatal(err)
	}
	delete(files, sums)
	return files
}

// digestFiles returns one line for each file, as sha256sum prints it.
func digestFiles(files map[string][]byte) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return out.String()
}

// TestReleasesAreUnchanged requires that the files of each release are those of its SHA256SUMS, and that every version
// of CHANGELOG.md has a folder.
func TestReleasesAreUnchanged(t *testing.T) {
	all := releases(t)
	for _, version := range all {
		want, err := released.ReadFile(releasedDir + "/" + version + "/" + sums)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), digestFiles(releaseFiles(t, version))); diff != "" {
			t.Errorf("files of the released version %s were changed, added or removed; restore them:\n%s", version, diff)
		}
	}
	changelog, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(changelog)) {
		name, isHeading := strings.CutPrefix(line, "## [")
		name, _, _ = strings.Cut(name, "]")
		if isHeading && name != "Unreleased" && !slices.Contains(all, "v"+name) {
			t.Errorf("CHANGELOG.md has version %s, but %s has no folder for it: see its README.md", name, releasedDir)
		}
	}
}

// TestFreezeRelease writes the folder of a release. Without -release it does nothing.
func TestFreezeRelease(t *testing.T) {
	if *release == "" {
		t.Skip("no -release")
	}
	if !semver.IsValid(*release) || semver.Canonical(*release) != *release {
		t.Fatalf("-release %q is not a version such as v0.1.0", *release)
	}
	dir := filepath.Join(releasedDir, *release)
	if _, err := os.Stat(dir); err == nil {
		t.Fatalf("%s exists: a released version is never written again", dir)
	}
	files := nextFiles(t)
	for name, text := range files {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	writeFile(t, filepath.Join(dir, sums), []byte(digestFiles(files)))
}
