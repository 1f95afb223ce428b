package catalog

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// eks is EKS with one cluster; it counts its calls.
type eks struct{ calls int }

func (e *eks) DescribeCluster(context.Context, string) (cloud.ClusterInfo, error) {
	e.calls++
	return cloud.ClusterInfo{Name: "demo", ARN: "arn", Endpoint: "https://eks", CABundle: "EKS=", ServiceCIDR: "10.0.0.0/16", Version: "1.34"}, nil
}

// What the settings say of how nodes join goes before what EKS names, and EKS is not called for a cluster that it does not run.
func TestGivenControlPlane(t *testing.T) {
	own := Given{Endpoint: "https://own", CABundle: "OWN=", Version: "1.35", ServiceCIDR: "fd00::/108", NoEKS: true}
	for _, tt := range []struct {
		name  string
		given Given
		want  catalog.ClusterFacts
		calls int
	}{
		{"nothing", Given{}, catalog.ClusterFacts{Endpoint: "https://eks", CABundle: "EKS=", ServiceCIDR: "10.0.0.0/16", Version: "1.34", IPFamily: "ipv4"}, 1},
		{"an endpoint", Given{Endpoint: "https://own"}, catalog.ClusterFacts{Endpoint: "https://own", CABundle: "EKS=", ServiceCIDR: "10.0.0.0/16", Version: "1.34", IPFamily: "ipv4"}, 1},
		{"certificates", Given{CABundle: "OWN="}, catalog.ClusterFacts{Endpoint: "https://eks", CABundle: "OWN=", ServiceCIDR: "10.0.0.0/16", Version: "1.34", IPFamily: "ipv4"}, 1},
		{"all of it", own, catalog.ClusterFacts{Endpoint: "https://own", CABundle: "OWN=", ServiceCIDR: "fd00::/108", Version: "1.35", IPFamily: "ipv6"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, asked := newBench(t), &eks{}
			b.Clusters, b.Given = asked, tt.given
			if err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: start}); err != nil {
				t.Fatal(err)
			}
			doc, err := blob.Get[catalog.Catalogue](t.Context(), b.blobs, last[event.CatalogRefreshed](t, b).Catalogue)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Name = "demo"
			if diff := cmp.Diff(tt.want, doc.Cluster); diff != "" || asked.calls != tt.calls {
				t.Errorf("%d calls\n%s", asked.calls, diff)
			}
		})
	}
}

func TestGivenControlPlaneLacksSomething(t *testing.T) {
	b := newBench(t)
	b.Given = Given{NoEKS: true, Endpoint: "https://own"}
	err := b.ask(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: start})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "CLUSTER_CA_BUNDLE, JOIST_KUBERNETES_VERSION not set") {
		t.Errorf("got %v", err)
	}
}
