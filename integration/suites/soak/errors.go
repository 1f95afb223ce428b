package soak

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// startup is how long after a restart of the API server an error may be a denial, because it had not read its roles yet: a
// watch is tried again after half a minute, doubled at random, and the error is logged until it begins.
const startup = 65 * time.Second

// errorLine is a log line of level ERROR.
type errorLine struct {
	service string
	At      time.Time `json:"time"`
	Msg     string    `json:"msg"`
	// Error and Err are the error, as the services and client-go name it.
	Error string `json:"error"`
	Err   string `json:"err"`
	// Kind is the kind of an error of package fault.
	Kind string `json:"kind"`
}

// parseErrorLine parses a service's name, a colon and its log line. A line that is no JSON becomes the message.
func parseErrorLine(text string) errorLine {
	service, raw, _ := strings.Cut(text, ": ")
	line := errorLine{service: service}
	if err := json.Unmarshal([]byte(raw), &line); err != nil {
		line.Msg = raw
	}
	return line
}

// unreachable are the messages of client-go about an API server that does not answer or denies a request.
var unreachable = []string{"Failed to watch", "Unexpected error when reading response body"}

// isExplained reports whether the line shows only that the API server was away, or denied a request while it started.
func (l errorLine) isExplained(began time.Time, restarts []Latency) bool {
	denied := l.Kind == string(fault.Denied) || strings.Contains(l.Error, "is forbidden")
	return (denied || slices.Contains(unreachable, l.Msg)) && isOutage(restarts, l.At.Sub(began))
}

// isOutage reports whether the API server was away at a time, or had just started.
func isOutage(restarts []Latency, at time.Duration) bool {
	return slices.ContainsFunc(restarts, func(r Latency) bool { return at >= r.At && at < r.At+r.Took+startup })
}

var (
	quoted  = regexp.MustCompile(`"[^"]*"`)
	numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)
)

// kind returns the line without names and numbers, so that equal problems can be counted.
func (l errorLine) kind() string {
	text := numbers.ReplaceAllString(quoted.ReplaceAllString(l.Msg+": "+l.Error+l.Err, "…"), "N")
	first, _, _ := strings.Cut(text, "\n")
	return fmt.Sprintf("%s: %.160s", l.service, first)
}
