package build

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

// TestCombine: the linker's values win, and the go command's records fill in the others.
func TestCombine(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: hash}, {Key: "vcs.time", Value: "2026-11-22T10:00:00Z"}, {Key: "vcs.modified", Value: modified}}
	}
	module := func(v string) debug.Module { return debug.Module{Version: v} }
	for _, test := range []struct {
		name     string
		linked   Info
		recorded debug.BuildInfo
		want     Info
		text     string
	}{
		{
			name: "a release", linked: Info{Version: "v0.1.0", Commit: hash, Date: "2026-11-23T10:00:00Z"},
			recorded: debug.BuildInfo{GoVersion: "go1.26.8", Main: module("(devel)"), Settings: vcs("true")},
			want:     Info{Version: "v0.1.0", Commit: hash, Date: "2026-11-23T10:00:00Z", Go: "go1.26.8"},
			text:     "v0.1.0 (commit 0123456789ab, 2026-11-23T10:00:00Z), go1.26.8",
		},
		{
			name: "go install", recorded: debug.BuildInfo{GoVersion: "go1.26.8", Main: module("v0.1.0")},
			want: Info{Version: "v0.1.0", Go: "go1.26.8"}, text: "v0.1.0, go1.26.8",
		},
		{
			name: "go build with changes", recorded: debug.BuildInfo{GoVersion: "go1.26.8", Main: module("(devel)"), Settings: vcs("true")},
			want: Info{Version: "development", Commit: hash + "+changes", Date: "2026-11-22T10:00:00Z", Go: "go1.26.8"},
			text: "development (commit 0123456789ab+changes, 2026-11-22T10:00:00Z), go1.26.8",
		},
		{
			name: "go build without version control", recorded: debug.BuildInfo{GoVersion: "go1.26.8"},
			want: Info{Version: "development", Go: "go1.26.8"}, text: "development, go1.26.8",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := combine(test.linked, &test.recorded)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.String() != test.text {
				t.Errorf("%q, want %q", got.String(), test.text)
			}
		})
	}
}

// TestUserAgent: the name of a component and the version, of at most 50 characters.
func TestUserAgent(t *testing.T) {
	old := version
	t.Cleanup(func() { version = old })
	for v, want := range map[string]string{
		"v0.1.0": "joist-launcher/v0.1.0",
		"v0.0.0-20261123205413-bbb134a9fdcd+dirty-and-more": "joist-launcher/v0.0.0-20261123205413-bbb134a9fdcd+",
	} {
		if version = v; UserAgent("joist-launcher") != want {
			t.Errorf("%s, want %s", UserAgent("joist-launcher"), want)
		}
	}
}

// TestRead: a test binary knows the version of Go.
func TestRead(t *testing.T) {
	if got := Read(); got.Version == "" || got.Go == "" {
		t.Errorf("%+v", got)
	}
}
