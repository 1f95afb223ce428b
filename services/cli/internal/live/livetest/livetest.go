// Package livetest is a running cluster for tests of commands: memcluster with the objects of a file.
package livetest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Actor is the actor of the commands in the cluster.
const Actor = "user"

// pageSize makes lists have several pages.
const pageSize = 2

// ListedServer is the API server of a cluster. It implements live.PageReader.
type ListedServer struct {
	*memcluster.Server
	// Err is the error of every list; nil for none.
	Err error
	// OnList is called before each list, and may return its error.
	OnList func(ctx context.Context) error
}

// New returns the cluster of a file at a time.
func New(t *testing.T, file string, now time.Time) *ListedServer {
	t.Helper()
	out := &ListedServer{Server: memcluster.New(memcluster.Options{Now: func() time.Time { return now }})}
	out.SeedObjects(ReadObjects(t, file)...)
	return out
}

// ReadObjects reads the objects of a file, with their status.
func ReadObjects(t *testing.T, file string) []cluster.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []cluster.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(cluster.Kinds, func(k cluster.Kind) bool { return k.APIVersion() == head.APIVersion && k.Kind == head.Kind })
		if at < 0 {
			t.Fatalf("unknown kind %+v", head)
		}
		object := cluster.Kinds[at].New()
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		out = append(out, object)
	}
	return out
}

// ListPages implements live.PageReader.
func (s *ListedServer) ListPages(ctx context.Context, kind cluster.Kind, namespace, selector string, seen func([]cluster.Object, int)) ([]cluster.Object, error) {
	if s.OnList != nil {
		if err := s.OnList(ctx); err != nil {
			return nil, err
		}
	}
	if s.Err != nil {
		return nil, s.Err
	}
	objects, err := s.ClientFor(Actor).List(ctx, kind, namespace)
	if err != nil {
		return nil, err
	}
	wanted, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(o cluster.Object) bool { return !wanted.Matches(labels.Set(o.GetLabels())) })
	for i := 0; i < len(objects); i += pageSize {
		page := objects[i:min(i+pageSize, len(objects))]
		seen(page, i+len(page))
	}
	return objects, nil
}

// Get implements live.PageReader.
func (s *ListedServer) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	return s.ClientFor(Actor).Get(ctx, kind, key)
}

// Forbid makes every call for the kinds fail with that kind of error.
func (s *ListedServer) Forbid(as fault.Kind, kinds ...cluster.Kind) {
	for _, kind := range kinds {
		s.InjectFaults(memcluster.Fault{Actor: Actor, Kind: kind, As: as})
	}
}

// Writes returns what the commands wrote.
func (s *ListedServer) Writes() []string {
	var out []string
	for _, effect := range s.Effects() {
		if effect.Actor == Actor {
			out = append(out, effect.Kind.Resource+"/"+effect.Key.String())
		}
	}
	return out
}
