package kubecluster

import (
	encodingjson "encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// nodePage is a page of NodePools with the given names.
func nodePage(next string, names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":%q}}`, name))
	}
	return fmt.Sprintf(`{"apiVersion":"karpenter.sh/v1","kind":"NodePoolList","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

// TestListPages reads several pages, starts again when the list expires, and returns the kinds of
// errors.
func TestListPages(t *testing.T) {
	const gone = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	for _, test := range []struct {
		name, labels string
		// answers are by the query of the request.
		answers map[string]string
		want    []string
		totals  []int
		kind    fault.Kind
	}{
		{"one page", "", map[string]string{"limit=500": nodePage("", "b", "a")}, []string{"a", "b"}, []int{2}, ""},
		{"no object", "", map[string]string{"limit=500": nodePage("")}, nil, []int{0}, ""},
		{"two pages", "", map[string]string{"limit=500": nodePage("x", "a"), "continue=x&limit=500": nodePage("", "b")}, []string{"a", "b"}, []int{1, 2}, ""},
		{"expired", "", map[string]string{"limit=500": nodePage("x", "a"), "continue=x&limit=500": gone, "": nodePage("", "a", "c")}, []string{"a", "c"}, []int{1, 2}, ""},
		{"expired at once", "", map[string]string{"limit=500": gone}, nil, nil, fault.Retry},
		{"forbidden", "", map[string]string{"limit=500": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`}, nil, nil, fault.Denied},
		{"by labels", "app in (a)", map[string]string{"labelSelector=app+in+%28a%29&limit=500": nodePage("", "a")}, []string{"a"}, []int{1}, ""},
		{"not served", "", map[string]string{}, nil, nil, fault.Missing},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, known := test.answers[r.URL.RawQuery]
				if r.Method != http.MethodGet || r.URL.Path != "/apis/karpenter.sh/v1/nodepools" || !known {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				if code := statusCode(answer); code != 0 {
					w.WriteHeader(code)
				}
				_, _ = w.Write([]byte(answer))
			}))
			t.Cleanup(server.Close)
			client, err := New(&rest.Config{Host: server.URL}, "test")
			if err != nil {
				t.Fatal(err)
			}
			var totals []int
			objects, err := client.ListPages(t.Context(), cluster.NodePools, "", test.labels, func(_ []cluster.Object, total int) { totals = append(totals, total) })
			if fault.KindOf(err) != test.kind {
				t.Fatalf("%v, want %q", err, test.kind)
			}
			var names []string
			for _, o := range objects {
				names = append(names, o.GetName())
			}
			if diff := cmp.Diff([]any{test.want, test.totals}, []any{names, totals}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// statusCode returns the code of a Status, or 0 for a list.
func statusCode(answer string) int {
	var status struct {
		Code int `json:"code"`
	}
	if err := encodingjson.Unmarshal([]byte(answer), &status); err != nil {
		return http.StatusInternalServerError
	}
	return status.Code
}
