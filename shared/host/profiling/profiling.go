// Package profiling serves the profiles of the Go runtime, at the paths at which Karpenter serves them. Only services
// that run as pods link it: it adds 0.4 MB to a binary, and a function has no port.
package profiling

import (
	"net/http"
	"net/http/pprof" // It also registers itself in http.DefaultServeMux, which no server uses.
)

// Path is the prefix of all profiles.
const Path = "/debug/pprof/"

// Handler returns the handler of everything below Path.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, pprof.Index)
	mux.HandleFunc(Path+"cmdline", pprof.Cmdline)
	mux.HandleFunc(Path+"profile", pprof.Profile)
	mux.HandleFunc(Path+"symbol", pprof.Symbol)
	mux.HandleFunc(Path+"trace", pprof.Trace)
	return mux
}
