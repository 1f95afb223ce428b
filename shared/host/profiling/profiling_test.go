package profiling_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/host/profiling"
)

func TestHandler(t *testing.T) {
	server := httptest.NewServer(profiling.Handler())
	defer server.Close()
	for path, want := range map[string]string{
		"": "goroutine", "goroutine?debug=1": "goroutine profile:", "heap?debug=1": "heap profile:", "allocs?debug=1": "heap profile:",
		"block?debug=1": "contention:", "threadcreate?debug=1": "threadcreate profile:", "cmdline": "test", "symbol": "num_symbols",
	} {
		answer, err := http.Get(server.URL + profiling.Path + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %v, %.80q", path, answer.Status, err, body)
		}
	}
}
