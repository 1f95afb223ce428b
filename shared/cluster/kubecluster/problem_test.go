package kubecluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcache "k8s.io/client-go/tools/cache"

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
			kept := reflectorStore{cluster.NewStore(cluster.VolumeClaims, cluster.Trim{}), func() {}}
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

// TestProblemEndsWithWatch denies a list, as an API server does before it has read its roles, and then lets the reflector
// stream the list. It does not list again for hours.
func TestProblemEndsWithWatch(t *testing.T) {
	kept := reflectorStore{cluster.NewStore(cluster.Nodes, cluster.Trim{}), func() {}}
	cache := &Cache{stores: map[cluster.Kind]reflectorStore{cluster.Nodes: kept}, problems: map[operation]error{}}
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no role"))
	_ = cache.recordError(t.Context(), operation{cluster.Nodes, verbList}, denied)
	if cache.Problem() == nil {
		t.Error("a denied list is no problem")
	}
	_ = cache.recordError(t.Context(), operation{cluster.Nodes, verbWatch}, nil)
	if err := cache.Problem(); err != nil {
		t.Errorf("Problem = %v after the watch began", err)
	}
}

// A kind of devices that the API server does not serve is synced and empty, so that everything else
// goes on, and Problem reports it until it is served. Any other kind stays unsynced.
func TestUnservedDevices(t *testing.T) {
	for kind, synced := range map[cluster.Kind]bool{cluster.ResourceSlices: true, cluster.NodeClaims: false} {
		kept := reflectorStore{cluster.NewStore(kind, cluster.Trim{}), func() {}}
		cache := &Cache{stores: map[cluster.Kind]reflectorStore{kind: kept}, problems: map[operation]error{}}
		unserved := apierrors.NewGenericServerResponse(404, "GET", schema.GroupResource{Group: kind.Group, Resource: kind.Resource}, "", "404 page not found", 0, true)
		var answer error = unserved
		source := cache.recordErrors(kind, &clientcache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &resourcev1.ResourceSliceList{}, answer
		}})
		if _, err := source.ListWithContextFunc(t.Context(), metav1.ListOptions{}); err == nil {
			t.Errorf("%s: the list returned no error, so it would not be repeated", kind.Kind)
		}
		if cache.Synced() != synced {
			t.Errorf("%s: synced = %t, want %t", kind.Kind, cache.Synced(), synced)
		}
		if problem := cache.Problem(); problem == nil || synced != strings.Contains(fault.FindHint(problem), "IGNORE_DRA_REQUESTS=true") {
			t.Errorf("%s: Problem = %v with hint %q", kind.Kind, problem, fault.FindHint(problem))
		}
		answer = nil
		if _, err := source.ListWithContextFunc(t.Context(), metav1.ListOptions{}); err != nil || cache.Problem() != nil {
			t.Errorf("%s: Problem = %v after the kind was served", kind.Kind, cache.Problem())
		}
	}
}
