package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	gpl = `This program is free software: you can redistribute it and/or modify
it under the terms of the GNU General Public License as published by
the Free Software Foundation, either version 3 of the License, or
(at your option) any later version.

This program is distributed in the hope that it will be useful,
but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the
GNU General Public License for more details.

You should have received a copy of the GNU General Public License
along with this program. If not, see <https://www.gnu.org/licenses/>.
`
	isc = `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY
AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM
LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR
OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THIS SOFTWARE.
`
	mpl = `This Source Code Form is subject to the terms of the Mozilla Public License,
v. 2.0. If a copy of the MPL was not distributed with this file, You can obtain
one at https://mozilla.org/MPL/2.0/.
`
	business = `Business Source License 1.1
Licensor: Example, Inc. The Licensed Work is example. Change Date: four years from the
date of the release. Change License: Apache License, Version 2.0. The Licensor hereby
grants you the right to make non-production use of the Licensed Work.
`
)

func TestCheckLicenses(t *testing.T) {
	exceptions := map[string]exception{"example.com/lru": {"MPL-2.0", "unmodified"}}
	lru := &module{Path: "example.com/lru", Licenses: map[string]string{"LICENSE": mpl}}
	for _, tt := range []struct {
		name     string
		licenses map[string]string
		want     string // part of the finding; empty for none
	}{
		{"allowed", map[string]string{"LICENSE": isc}, ""},
		{"forbidden", map[string]string{"LICENSE": gpl}, "example.com/x has the licence GPL-3.0-or-later in LICENSE, which is not allowed (imported by joist/a, joist/b)"},
		{"forbidden in a subdirectory", map[string]string{"LICENSE": isc, "internal/LICENSE": gpl}, "internal/LICENSE"},
		{"allowed for another module only", map[string]string{"LICENSE": mpl}, "has the licence MPL-2.0"},
		{"restricted use", map[string]string{"LICENSE": business}, "example.com/x has an unknown licence in LICENSE"},
		{"no text of a licence", map[string]string{"LICENSE": "Ask us."}, "unknown licence"},
		{"no file", nil, "has no licence file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &module{Path: "example.com/x", Licenses: tt.licenses, Importers: []string{"joist/a", "joist/b"}}
			findings := checkLicenses([]*module{lru, m}, exceptions)
			switch {
			case tt.want == "" && len(findings) == 0:
			case tt.want == "" || len(findings) != 1 || !strings.Contains(findings[0], tt.want):
				t.Errorf("findings %q, want one with %q", findings, tt.want)
			}
		})
	}
	t.Run("an exception that no module needs", func(t *testing.T) {
		if findings := checkLicenses(nil, exceptions); len(findings) != 1 || !strings.Contains(findings[0], "example.com/lru") {
			t.Errorf("findings %q, want one for example.com/lru", findings)
		}
	})
}

// TestLinkedModules plants a module with a forbidden licence in a command: the GPL is in the
// folder of the imported package, not at the module's root.
func TestLinkedModules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"planted/go.mod":               "module example.com/planted\n\ngo 1.26\n",
		"planted/LICENSE":              isc,
		"planted/NOTICE":               "Copyright Example",
		"planted/LICENSE.go":           "package planted\n",
		"planted/inner/copying.txt":    gpl,
		"planted/inner/inner.go":       "package inner\n",
		"planted/unlinked/LICENSE":     business,
		"planted/unlinked/unlinked.go": "package unlinked\n",
		"go.mod": "module " + ours + "services/x\n\ngo 1.26\n\nrequire example.com/planted v1.0.0\n\n" +
			"replace example.com/planted => ./planted\n",
		"cmd/x/main.go": "package main\n\nimport _ \"example.com/planted/inner\"\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := linkedModules([]command{{filepath.Join(dir, "cmd", "x"), "linux"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) != 2 || modules[0].Path != standardLibrary || modules[1].Path != "example.com/planted" {
		t.Fatalf("modules %v, want the standard library and example.com/planted", modules)
	}
	findings := checkLicenses(modules, nil)
	want := "example.com/planted has the licence GPL-3.0-or-later in inner/copying.txt, which is not allowed (imported by " + ours + "services/x/cmd/x)"
	if len(findings) != 1 || !strings.Contains(findings[0], want) {
		t.Errorf("findings %q, want one with %q", findings, want)
	}
	if notice := renderNotice(modules); !strings.Contains(notice, "example.com/planted/NOTICE\n"+thinRule+"Copyright Example\n") {
		t.Errorf("NOTICE lacks the planted notice:\n%s", notice)
	}
	if text := renderLicenses(modules); !strings.Contains(text, "  example.com/planted/inner/copying.txt\n") || strings.Contains(text, "unlinked") {
		t.Errorf("THIRD_PARTY_LICENSES lacks a licence, or lists one of a package that is not linked:\n%s", text)
	}
}

// TestShippedCommands fails if a command is missing, with which every licence would be allowed.
func TestShippedCommands(t *testing.T) {
	commands, err := shippedCommands(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, c := range commands {
		found[filepath.Base(c.Dir)+" "+c.OS] = true
	}
	for _, want := range []string{
		"joist linux", "joist darwin", "joist windows", "joist-watcher linux", "joist-lifecycle linux", "joist-planner linux",
		"joist-disruption linux", "joist-interruption linux", "joist-catalog linux", "joist-launcher linux", "joist-spotrole linux",
	} {
		if !found[want] {
			t.Errorf("%s is missing from the shipped commands", want)
		}
	}
}
