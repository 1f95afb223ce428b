package cluster_test

import (
	"reflect"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

func TestKinds(t *testing.T) {
	if len(cluster.Kinds) != 27 {
		t.Errorf("%d kinds", len(cluster.Kinds))
	}
	types := map[reflect.Type]bool{}
	for _, kind := range cluster.Kinds {
		object := kind.New()
		if object == nil {
			t.Errorf("%s: New returned nil", kind.Kind)
			continue
		}
		if got := reflect.TypeOf(object).Elem().Name(); got != kind.Kind {
			t.Errorf("%s: New returned a %s", kind.Kind, got)
		}
		if back, ok := cluster.KindOf(object); !ok || back != kind {
			t.Errorf("%s: KindOf = %+v", kind.Kind, back)
		}
		types[reflect.TypeOf(object)] = true
	}
	if len(types) != len(cluster.Kinds) {
		t.Errorf("%d Go types for %d kinds", len(types), len(cluster.Kinds))
	}
	if (cluster.Kind{Kind: "Coffee"}).New() != nil {
		t.Error("New of an unknown kind returned an object")
	}
	if _, ok := cluster.KindOf(nil); ok {
		t.Error("KindOf(nil) found a kind")
	}
}

func TestAPIVersion(t *testing.T) {
	if got := cluster.Pods.APIVersion(); got != "v1" {
		t.Errorf("APIVersion of pods = %q", got)
	}
	if got := cluster.NodeClaims.APIVersion(); got != "karpenter.sh/v1" {
		t.Errorf("APIVersion of NodeClaims = %q", got)
	}
}
