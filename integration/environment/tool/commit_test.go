package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The folder has the files of the commit, not those of the work tree.
func TestUnpackCommit(t *testing.T) {
	repository, into := t.TempDir(), filepath.Join(t.TempDir(), "new")
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("shared/a", "committed")
	write("services/b", "committed")
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "c"}} {
		if _, err := Git(t.Context(), repository, args...); err != nil {
			t.Fatal(err)
		}
	}
	write("shared/a", "changed")
	if err := UnpackCommit(t.Context(), repository, "HEAD", into); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shared/a", "services/b"} {
		if text, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(text) != "committed" {
			t.Errorf("%s has %q (%v), want the text of the commit", name, text, err)
		}
	}
}

func TestUnpackCommitNamesUnknownReference(t *testing.T) {
	if err := UnpackCommit(t.Context(), t.TempDir(), "no-such-tag", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no-such-tag") {
		t.Errorf("got %v, want an error that names the reference", err)
	}
}
