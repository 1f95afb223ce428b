package host

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Each URL is requested until it returns 200, for a minute in total.
func TestCheckURLs(t *testing.T) {
	const watcher, lifecycle = "http://joist-watcher:8080/metrics", "http://joist-lifecycle:8080/metrics"
	for _, c := range []struct {
		name string
		urls []string
		// readyAfter is when each host returns 200. Before it, the first request fails and the others return 503.
		readyAfter    map[string]time.Duration
		code          int
		took          time.Duration
		out, problems string
	}{
		{name: "all are ready", urls: []string{watcher, lifecycle}, out: watcher + " ok\n" + lifecycle + " ok\n"},
		{name: "one becomes ready", urls: []string{watcher, lifecycle}, readyAfter: map[string]time.Duration{"joist-lifecycle:8080": 5 * time.Second},
			took: 6 * time.Second, out: watcher + " ok\n" + lifecycle + " ok\n"},
		{name: "one does not", urls: []string{watcher, lifecycle}, readyAfter: map[string]time.Duration{"joist-watcher:8080": time.Hour},
			code: 1, took: time.Minute, problems: watcher + ": the status is 503 Service Unavailable (see the log of its pods)\n"},
		{name: "no URL", code: 2, problems: "--check: no URL is given (write --check http://joist-watcher.joist.svc:8080/metrics)\n"},
		{name: "a wrong URL", urls: []string{"http://%"}, code: 1, took: time.Minute, problems: "http://%: parse \"http://%\": invalid URL escape \"%\" (see the log of its pods)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, requests := time.Now(), 0
				client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					requests++
					status := http.StatusOK
					if time.Since(began) < c.readyAfter[r.URL.Host] {
						if requests == 1 {
							return nil, errors.New("connection refused")
						}
						status = http.StatusServiceUnavailable
					}
					return &http.Response{StatusCode: status, Status: "503 Service Unavailable", Body: io.NopCloser(strings.NewReader("body"))}, nil
				})}
				var out, problems bytes.Buffer
				code := checkURLs(t.Context(), client, c.urls, &out, &problems)
				if code != c.code || out.String() != c.out || problems.String() != c.problems || time.Since(began) != c.took {
					t.Errorf("code %d after %s, output %q, problems %q", code, time.Since(began), out.String(), problems.String())
				}
			})
		})
	}
}
