package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the repository's folder.
const root = "../../.."

// TestReadmeShowsData fails if a figure was edited by hand.
func TestReadmeShowsData(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, data)); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no measurements yet: run make figures")
	}
	want, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range want {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s does not show %s (-want +got); try: go run ./integration/bench/figures\n%s", path, data, diff)
		}
	}
}

func TestReplaceKeepsOtherText(t *testing.T) {
	page := "# Joist\n" + begin + "old\n" + end + "## More\n"
	got, err := replace([]byte(page), "new\n")
	if want := "# Joist\n" + begin + "new\n" + end + "## More\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, broken := range []string{"# Joist\n", begin + "old\n", end + begin} {
		if _, err := replace([]byte(broken), "new\n"); err == nil {
			t.Errorf("%q has no place for figures, but replace returned no error", broken)
		}
	}
}
