// Package build describes how the running binary was built. Release builds and .ci/flags set the version, the commit
// and the date with the linker; other builds use what the go command recorded.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker: -X github.com/joist-autoscaler/joist/shared/host/build.version=v1.2.3. The names are a contract
// with .ci/flags and the release's configuration.
var version, commit, date string

// development is the version of a build that records none.
const development = "development"

// Info describes a build. It is part of the output of `joist version -o json`, a contract.
type Info struct {
	// Version is the release, such as v0.1.0, the version of the module that go install built, or "development".
	Version string `json:"version"`
	// Commit is the commit of the source, with "+changes" if the work tree differed. It is empty if the build does
	// not record it.
	Commit string `json:"commit,omitempty"`
	// Date is the time of the commit in RFC 3339. It is empty if the build does not record it.
	Date string `json:"date,omitempty"`
	// Go is the version of Go.
	Go string `json:"go"`
}

// Read returns how the running binary was built.
func Read() Info {
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		recorded = &debug.BuildInfo{}
	}
	return combine(Info{Version: version, Commit: commit, Date: date}, recorded)
}

// combine fills in the fields that the linker did not set. A commit or date that the go command recorded describes
// the same source as the linker's.
func combine(linked Info, recorded *debug.BuildInfo) Info {
	settings := map[string]string{}
	for _, s := range recorded.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision != "" && settings["vcs.modified"] == "true" {
		revision += "+changes"
	}
	return Info{
		Version: cmp.Or(linked.Version, strings.TrimSuffix(recorded.Main.Version, "(devel)"), development),
		Commit:  cmp.Or(linked.Commit, revision),
		Date:    cmp.Or(linked.Date, settings["vcs.time"]),
		Go:      cmp.Or(recorded.GoVersion, runtime.Version()),
	}
}

// String returns the build on one line: "v0.1.0 (commit 0123456789ab, 2026-11-23T10:00:00Z), go1.26.8".
func (i Info) String() string {
	var details []string
	if i.Commit != "" {
		hash, changes, changed := strings.Cut(i.Commit, "+")
		hash = hash[:min(shortHash, len(hash))]
		if changed {
			hash += "+" + changes
		}
		details = append(details, "commit "+hash)
	}
	if i.Date != "" {
		details = append(details, i.Date)
	}
	text := i.Version
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text + ", " + i.Go
}

// maxUserAgent is the longest app id that AWS recommends.
const maxUserAgent = 50

// UserAgent returns how a component names itself to AWS and Kubernetes: "joist-launcher/v0.1.0".
func UserAgent(component string) string {
	agent := component + "/" + Read().Version
	return agent[:min(maxUserAgent, len(agent))]
}

// shortHash is the length of a commit in String.
const shortHash = 12
