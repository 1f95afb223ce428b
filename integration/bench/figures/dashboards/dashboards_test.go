package dashboards

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
)

const deploy = "../../../../deploy"

// The documentation has pictures of the current dashboards.
func TestPicturesMatchDashboards(t *testing.T) {
	pages := map[string]struct {
		file, title string
		read        func([]byte) ([]Picture, error)
	}{
		"cloudwatch":        {"../../../../shared/host/telemetry/board/testdata/cloudwatch.json", "CloudWatch", CloudWatch},
		"cloudwatch-inside": {"../../../../shared/host/telemetry/board/testdata/cloudwatch-inside.json", "CloudWatch, with the services inside the cluster", CloudWatch},
	}
	for _, d := range board.Dashboards {
		pages[strings.TrimPrefix(d.Name, "joist-")] = struct {
			file, title string
			read        func([]byte) ([]Picture, error)
		}{filepath.Join(deploy, "grafana", d.Name+".json"), d.Title, Grafana}
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(page.file)
			if err != nil {
				t.Fatal(err)
			}
			pictures, err := page.read(text)
			if err != nil {
				t.Fatal(err)
			}
			drawing, err := SVG(page.title, pictures)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := SVG(page.title, pictures); err != nil || !bytes.Equal(drawing, again) {
				t.Errorf("a second drawing differs (%v)", err)
			}
			if !strings.Contains(string(drawing), note) {
				t.Error("the drawing does not state that its data are generated")
			}
			for _, p := range pictures {
				if !p.Header && (len(p.Lines) == 0 || !strings.Contains(string(drawing), p.Title)) {
					t.Errorf("the panel %q is not drawn", p.Title)
				}
				for _, line := range p.Lines {
					if strings.TrimSpace(line) != line || strings.Contains(line, "  ") || strings.ContainsAny(line, "{}$") {
						t.Errorf("a line of %q has the name %q: a label has no demo value", p.Title, line)
					}
				}
			}
			file := filepath.Join(deploy, "docs/figures/dashboards-"+name+".svg")
			golden.Compare(t, file, string(drawing))
		})
	}
}

func TestNothingToDrawIsAnError(t *testing.T) {
	if _, err := SVG("nothing", nil); err == nil {
		t.Error("SVG returned no error without panels")
	}
	for _, read := range []func([]byte) ([]Picture, error){Grafana, CloudWatch} {
		if _, err := read([]byte("{")); err == nil {
			t.Error("read returned no error for invalid JSON")
		}
	}
}
