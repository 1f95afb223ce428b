package golden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
)

// recorder records whether a test failed.
type recorder struct {
	testing.TB
	failed bool
}

func (*recorder) Helper()                 {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.golden")
	if err := os.WriteFile(path, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]bool{"text\n": false, "text": true, "another text\n": true} {
		r := &recorder{TB: t}
		if golden.Compare(r, path, got); r.failed != want {
			t.Errorf("%q: failed %t, want %t", got, r.failed, want)
		}
	}
}
