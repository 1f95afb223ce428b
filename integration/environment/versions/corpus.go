package versions

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// launches is the folder with the documents of one plan, which the simulator's tests write and admit.
const launches = "launches/"

// released has one folder for each release.
//
//go:embed testdata/released
var released embed.FS

const releasedDir = "testdata/released"

// ReleasedVersions returns the released versions, oldest first.
func ReleasedVersions() ([]string, error) {
	entries, err := released.ReadDir(releasedDir)
	if err != nil {
		return nil, fmt.Errorf("listing the released versions: %w", err)
	}
	var out []string
	for _, entry := range entries {
		if entry.IsDir() {
			out = append(out, entry.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(semver.Compare(a, b), cmp.Compare(a, b)) })
	return out, nil
}

// LastReleased returns the fields that the last release knows, or nil before the first release.
func LastReleased() (Fields, error) {
	all, err := ReleasedVersions()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	files, err := readFiles(released, path.Join(releasedDir, all[len(all)-1]))
	if err != nil {
		return nil, err
	}
	return fieldsOfFiles(files)
}

// readFiles returns the files below a folder by their paths in it.
func readFiles(from fs.FS, dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(from, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		out[strings.TrimPrefix(name, dir+"/")], err = fs.ReadFile(from, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the texts in %s: %w", dir, err)
	}
	return out, nil
}

// fieldsOfFiles returns the fields of all examples.
func fieldsOfFiles(files map[string][]byte) (Fields, error) {
	out := Fields{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		form, text, err := parseExample(name, files[name])
		if err != nil {
			return nil, err
		}
		if form != "" {
			out.add(form, text)
		}
	}
	return out, nil
}

// parseExample returns the form and the text of a file: of a message the body. The form is empty for a file that is
// no example.
func parseExample(name string, text []byte) (TextKind, []byte, error) {
	if !strings.HasSuffix(name, ".json") {
		return "", nil, nil
	}
	form := TextKind(strings.TrimSuffix(name, ".json"))
	if document, ok := strings.CutPrefix(string(form), launches); ok {
		document, _, _ = strings.Cut(document, "-") // The rest is the id of an intent.
		return Documents + TextKind(document), text, nil
	}
	if !strings.HasPrefix(name, Messages) {
		// The form of an annotation or of a ConfigMap contains a slash.
		return TextKind(strings.ReplaceAll(string(form), "__", "/")), text, nil
	}
	var message struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &message); err != nil {
		return "", nil, fmt.Errorf("reading the released message %s: %w", name, err)
	}
	return Messages + TextKind(message.Type), message.Data, nil
}

// fileOf returns the name of the file with the example of a form.
func fileOf(form TextKind) string {
	dir, name, _ := strings.Cut(string(form), "/")
	return dir + "/" + strings.ReplaceAll(name, "/", "__") + ".json"
}
