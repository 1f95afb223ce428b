package soak

import (
	"testing"
	"time"
)

// TestIsExplained accepts denials while the API server starts, and no other error.
func TestIsExplained(t *testing.T) {
	began := time.Date(2026, 11, 27, 11, 0, 0, 0, time.UTC)
	restarts := []Latency{{At: time.Hour, Took: 4 * time.Second}}
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"a denial", `joist-watcher: {"time":"2026-11-27T12:00:10Z","level":"ERROR","msg":"background error","error":"watch pods: pods is forbidden: User"}`, true},
		{"a denial that client-go logs", `joist-watcher: {"time":"2026-11-27T12:00:10Z","level":"ERROR","msg":"Failed to watch","err":"pods is forbidden"}`, true},
		{"a denial without a text", `joist-lifecycle: {"time":"2026-11-27T12:00:10Z","level":"ERROR","msg":"background error","error":"get nodepools default: unknown","kind":"denied"}`, true},
		{"a cut answer", `joist-lifecycle: {"time":"2026-11-27T12:00:00.1Z","level":"ERROR","msg":"Unexpected error when reading response body","err":"unexpected EOF"}`, true},
		{"a cut answer at another time", `joist-lifecycle: {"time":"2026-11-27T12:10:00Z","level":"ERROR","msg":"Unexpected error when reading response body","err":"unexpected EOF"}`, false},
		{"a denial before the restart", `joist-watcher: {"time":"2026-11-27T11:59:59Z","level":"ERROR","msg":"background error","error":"pods is forbidden"}`, false},
		{"a denial much later", `joist-watcher: {"time":"2026-11-27T12:01:10Z","level":"ERROR","msg":"background error","error":"pods is forbidden"}`, false},
		{"another error", `joist-watcher: {"time":"2026-11-27T12:00:10Z","level":"ERROR","msg":"background error","error":"index out of range"}`, false},
		{"a line that is no JSON", "joist-watcher: goroutine 1 [running]:", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseErrorLine(tt.text).isExplained(began, restarts); got != tt.want {
				t.Errorf("isExplained is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestErrorKind removes what differs between lines of one problem.
func TestErrorKind(t *testing.T) {
	text := `joist-lifecycle: {"msg":"background error","error":"NodeClaim default-1e0d: update \"a\": the object has 12 owners\nmore"}`
	if got, want := parseErrorLine(text).kind(), "joist-lifecycle: background error: NodeClaim default-N: update …: the object has N owners"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
