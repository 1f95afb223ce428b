package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// TestPreviousRelease runs the scenario once for each service: this service is of the previous release, all others are
// of this version. The stack, the chart and the CRDs are of this version, as in the middle of an upgrade. JOIST_PREVIOUS
// names the release, by default the last tag; JOIST_PREVIOUS_SERVICE runs one service alone.
func TestPreviousRelease(t *testing.T) {
	if os.Getenv("JOIST_VERSIONS") == "" {
		t.Skip("JOIST_VERSIONS is not set: runs a control plane and seven services for each service (make versions)")
	}
	commit, previous, err := testbed.BuildPrevious(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if previous == "" {
		t.Skip("no release yet: set JOIST_PREVIOUS to a git reference")
	}
	current, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range testbed.Services() {
		if only := os.Getenv("JOIST_PREVIOUS_SERVICE"); only != "" && only != old {
			continue
		}
		t.Run(old+" of "+commit, func(t *testing.T) {
			dir := t.TempDir()
			for _, service := range testbed.Services() {
				from := current
				if service == old {
					from = previous
				}
				if err := os.Symlink(filepath.Join(from, "joist-"+service), filepath.Join(dir, "joist-"+service)); err != nil {
					t.Fatal(err)
				}
			}
			runBinaries(t, dir, true)
		})
	}
}
