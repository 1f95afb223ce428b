package kube_test

import (
	"context"
	"slices"
	"testing"

	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// TestList reads all pages. A kind that is not served has no objects, and another error ends the list.
func TestList(t *testing.T) {
	pages := map[string]string{
		"/objects?limit=500":                `{"metadata":{"continue":"a&b"},"items":["1","2"]}`,
		"/objects?limit=500&continue=a%26b": `{"items":["3"]}`,
		"/chosen?name=x&limit=500":          `{"items":["4"]}`,
	}
	read := func(_ context.Context, path string) ([]byte, error) {
		switch page, there := pages[path]; {
		case there:
			return []byte(page), nil
		case path == "/denied?limit=500":
			return nil, fault.F("reading", fault.Denied, "forbidden")
		}
		return nil, fault.F("reading", fault.Missing, "not found: %s", path)
	}
	for _, test := range []struct {
		path string
		want []string
		kind fault.Kind
	}{
		{"/objects", []string{"1", "2", "3"}, ""},
		{"/chosen?name=x", []string{"4"}, ""},
		{"/none", nil, ""},
		{"/denied", nil, fault.Denied},
	} {
		got, err := kube.List[string](t.Context(), read, test.path)
		if !slices.Equal(got, test.want) || (err != nil) != (test.kind != "") || err != nil && !fault.Is(err, test.kind) {
			t.Errorf("%s: %v, %v", test.path, got, err)
		}
	}
}
