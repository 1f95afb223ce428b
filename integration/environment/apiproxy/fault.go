package apiproxy

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Fault is a kind of fault.
type Fault string

// The faults, and the requests that can get them.
const (
	// Delay forwards a request late, by up to Options.Delay.
	Delay Fault = "delay"
	// CutWatch ends a watch after some bytes, usually in the middle of an event.
	CutWatch Fault = "cut watch"
	// DropBookmarks removes the bookmarks of a watch, which an API server sends as it likes. The bookmark at the end of
	// the initial events stays.
	DropBookmarks Fault = "drop bookmarks"
	// ExpireWatch answers a watch that resumes with 410 Gone, or sends the same as an event.
	ExpireWatch Fault = "410 on a watch"
	// RefuseStream answers a watch that asks for the initial events with 422, as an API server does that cannot stream a
	// list. The client then lists in pages.
	RefuseStream Fault = "no streaming lists"
	// ExpirePage answers a page of a list after the first with 410 Gone.
	ExpirePage Fault = "410 on a page"
	// SmallPages lowers the size of pages to three objects.
	SmallPages Fault = "small pages"
	// Conflict answers an update, or a deletion with preconditions, with 409 without forwarding it.
	Conflict Fault = "409"
	// TooMany answers with 429 and Retry-After, as priority and fairness do.
	TooMany Fault = "429"
	// InternalError answers with 500.
	InternalError Fault = "500"
	// Unavailable answers with 503.
	Unavailable Fault = "503"
	// Reset ends the request without an answer, before the API server gets it.
	Reset Fault = "reset"
	// AppliedError forwards a write, and answers with an error although it was stored: with 500, with 504, with no
	// answer, or with the 409 that a load balancer's repetition of the write gets.
	AppliedError Fault = "applied, but an error"
	// Disconnect closes all connections. It is not drawn: Proxy.Disconnect causes it.
	Disconnect Fault = "closed connections"
)

// before lists the faults that are drawn before a request is forwarded, in this order.
var before = []Fault{Delay, SmallPages, RefuseStream, ExpireWatch, ExpirePage, Conflict, TooMany, InternalError, Unavailable, Reset}

// Drawn are all faults that are drawn for requests.
var Drawn = slices.Concat(before, []Fault{CutWatch, DropBookmarks, AppliedError})

// Shares is the share of the requests that get a fault, from 0 to 1, for each fault that the request can get.
type Shares map[Fault]float64

// Counts is how often each fault happened.
type Counts map[Fault]int

// Missing returns the faults that did not happen, in alphabetical order.
func (c Counts) Missing(want ...Fault) []Fault {
	missing := slices.DeleteFunc(slices.Clone(want), func(f Fault) bool { return c[f] > 0 })
	slices.Sort(missing)
	return missing
}

// Add adds the counts of another proxy.
func (c Counts) Add(other Counts) {
	for f, n := range other {
		c[f] += n
	}
}

// Sorted returns the faults that happened, in alphabetical order.
func (c Counts) Sorted() []Fault { return slices.Sorted(maps.Keys(c)) }

// applies reports whether a request can get a fault.
func (f Fault) applies(r *http.Request) bool {
	query := r.URL.Query()
	watch, list := query.Get("watch") == "true" || query.Get("watch") == "1", query.Has("limit") || query.Has("continue")
	streams := query.Get("sendInitialEvents") == "true"
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
		return list
	case Conflict:
		return r.Method == http.MethodPut || r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/apply-patch+yaml"
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
