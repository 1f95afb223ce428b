package apiproxy

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// WireFault is a kind of fault of the connection to an API server.
type WireFault string

// The faults, and the requests that can get them.
const (
	// Delay forwards a request late, by up to Options.Delay.
	Delay WireFault = "delay"
	// CutWatch ends a watch after some bytes, usually in the middle of an event.
	CutWatch WireFault = "cut watch"
	// DropBookmarks removes the bookmarks of a watch, which an API server sends as it likes. The bookmark at the end of
	// the initial events stays.
	DropBookmarks WireFault = "drop bookmarks"
	// ExpireWatch answers a watch that resumes with 410 Gone, or sends the same as an event.
	ExpireWatch WireFault = "410 on a watch"
	// RefuseStream answers a watch that asks for the initial events with 422, as an API server does that cannot stream a
	// list. The client then lists in pages.
	RefuseStream WireFault = "no streaming lists"
	// ExpirePage answers a page of a list after the first with 410 Gone.
	ExpirePage WireFault = "410 on a page"
	// SmallPages lowers the size of pages to three objects.
	SmallPages WireFault = "small pages"
	// Conflict answers an update, or a deletion with preconditions, with 409 without forwarding it.
	Conflict WireFault = "409"
	// TooMany answers with 429 and Retry-After, as priority and fairness do.
	TooMany WireFault = "429"
	// InternalError answers with 500.
	InternalError WireFault = "500"
	// Unavailable answers with 503.
	Unavailable WireFault = "503"
	// Reset ends the request without an answer, before the API server gets it.
	Reset WireFault = "reset"
	// AppliedError forwards a write, and answers with an error although it was stored: with 500, with 504, with no
	// answer, or with the 409 that a load balancer's repetition of the write gets.
	AppliedError WireFault = "applied, but an error"
	// Disconnect closes all connections. It is not drawn: Proxy.Disconnect causes it.
	Disconnect WireFault = "closed connections"
)

// before lists the faults that are drawn before a request is forwarded, in this order.
var before = []WireFault{Delay, SmallPages, RefuseStream, ExpireWatch, ExpirePage, Conflict, TooMany, InternalError, Unavailable, Reset}

// Drawn are all faults that are drawn for requests.
var Drawn = slices.Concat(before, []WireFault{CutWatch, DropBookmarks, AppliedError})

// Shares is the share of the requests that get a fault, from 0 to 1, for each fault that the request can get.
type Shares map[WireFault]float64

// FaultCounts is how often each fault happened.
type FaultCounts map[WireFault]int

// Missing returns the faults that did not happen, in alphabetical order.
func (c FaultCounts) Missing(want ...WireFault) []WireFault {
	missing := slices.DeleteFunc(slices.Clone(want), func(f WireFault) bool { return c[f] > 0 })
	slices.Sort(missing)
	return missing
}

// Add adds the counts of another proxy.
func (c FaultCounts) Add(other FaultCounts) {
	for f, n := range other {
		c[f] += n
	}
}

// SortedFaults returns the faults that happened, in alphabetical order.
func (c FaultCounts) SortedFaults() []WireFault { return slices.Sorted(maps.Keys(c)) }

// isTrue reports whether a parameter of a request is set.
func isTrue(parameter string) bool { return parameter == "true" || parameter == "1" }

// applies reports whether a request can get a fault.
func (f WireFault) applies(r *http.Request) bool {
	if f == Conflict {
		return r.Method == http.MethodPut || r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/apply-patch+yaml"
	}
	query := r.URL.Query()
	watch, streams := isTrue(query.Get("watch")), isTrue(query.Get("sendInitialEvents"))
	switch f {
	case CutWatch, DropBookmarks:
		return watch
	case ExpireWatch:
		return watch && !streams && query.Get("resourceVersion") != ""
	case RefuseStream:
		return watch && streams
	case ExpirePage:
		return query.Get("continue") != ""
	case SmallPages:
		return query.Has("limit") || query.Has("continue")
	case AppliedError:
		return r.Method != http.MethodGet
	case Disconnect:
		return false
	default:
		return true
	}
}

// isEviction reports whether the request evicts a pod.
func isEviction(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/eviction") }
