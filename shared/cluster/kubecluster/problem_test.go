package kubecluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Problem returns why a cache is not synced. When it is synced, a broken watch is not a
// problem, and a missing permission is one until it is granted.
func TestProblem(t *testing.T) {
	group := schema.GroupResource{Resource: "persistentvolumeclaims"}
	denied := apierrors.NewForbidden(group, "", errors.New(`User "x" cannot watch resource "persistentvolumeclaims"`))
	for _, c := range []struct {
		name  string
		ready bool
		tell  map[string]error
		hint  string
		told  bool
	}{
		{"first watch breaks", false, map[string]error{verbWatch: errors.New("reset")}, "", true},
		{"watch breaks after the first list", true, map[string]error{verbWatch: errors.New("reset")}, "", false},
		{
			"permission missing at first", false, map[string]error{verbList: denied, verbWatch: denied},
			`grant the verb "list" on the resource "persistentvolumeclaims" of the API group "" to this service account`, true,
		},
		{
			"permission missing later", true, map[string]error{verbList: nil, verbWatch: denied},
			`grant the verb "watch" on the resource "persistentvolumeclaims" of the API group "" to this service account`, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := reflectorStore{cluster.NewStore(cluster.VolumeClaims, nil), func() {}}
			cache := &Cache{stores: map[cluster.Kind]reflectorStore{cluster.VolumeClaims: kept}, problems: map[operation]error{}}
			if c.ready {
				if err := kept.Replace(nil, "1"); err != nil {
					t.Fatal(err)
				}
			}
			for verb, err := range c.tell {
				_ = cache.recordError(t.Context(), operation{cluster.VolumeClaims, verb}, err)
			}
			problem := cache.Problem()
			if got := fault.FindHint(problem); (problem != nil) != c.told || got != c.hint {
				t.Errorf("Problem = %v with hint %q, want hint %q", problem, got, c.hint)
			}
			for verb := range c.tell {
				_ = cache.recordError(t.Context(), operation{cluster.VolumeClaims, verb}, nil)
			}
			if err := cache.Problem(); err != nil {
				t.Errorf("Problem = %v after the permission was granted", err)
			}
		})
	}
}
