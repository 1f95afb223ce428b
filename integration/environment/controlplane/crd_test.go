package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadCRDs(t *testing.T) {
	definition := func(name string) string {
		return "kind: CustomResourceDefinition\nmetadata:\n  name: " + name + "\n"
	}
	tests := []struct {
		name    string
		files   map[string]string
		want    string
		wantErr string
	}{
		{"two files", map[string]string{"a.yaml": definition("a"), "b.yml": definition("b")}, "a b", ""},
		{"two in one", map[string]string{"a.yaml": "---\n" + definition("a") + "---\n" + definition("b") + "---\n"}, "a b", ""},
		{"other files", map[string]string{"a.yaml": definition("a"), "README.md": "read me"}, "a", ""},
		{"none", map[string]string{"README.md": "read me"}, "", "has no CRDs"},
		{"another kind", map[string]string{"a.yaml": "kind: Pod\nmetadata: {name: web}\n"}, "", `Pod "web" is not a CustomResourceDefinition`},
		{"no YAML", map[string]string{"a.yaml": "a: b: c"}, "", "a.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tt.files {
				check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
			}
			crds, err := readCRDs(dir)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %v, want an error with %q", err, tt.wantErr)
				}
				return
			}
			check(t, err)
			var names []string
			for _, crd := range crds {
				names = append(names, crd.GetName())
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
