package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

func TestReadVolumes(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]string{
		"volume_limits_table.go": `package limits
var nonNitroInstanceTypes = map[string]struct{}{"t2.micro": {}}
var volumeLimits = map[string]volumeLimit{"c5d.large": {26, "shared"}, "c7a.large": {32, "dedicated"}, "c8gn.metal-24xl": {39, "shared"}}
type volumeLimit struct { maxAttachments int; attachmentType string }
`,
		"volume_limits.go": `package limits
var dedicatedInstances = map[string]struct{}{"c8gn.metal-24xl": {}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readVolumes(dir)
	want := map[string]catalog.Attachments{
		"t2.micro": {Count: 39, Dedicated: true}, "c5d.large": {Count: 26}, "c7a.large": {Count: 32, Dedicated: true},
		"c8gn.metal-24xl": {Count: 39, Dedicated: true},
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v: %v", got, err)
	}
	if _, err := readVolumes(t.TempDir()); err == nil {
		t.Error("no tables were read")
	}
}
