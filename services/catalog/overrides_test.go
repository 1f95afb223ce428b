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

// fakeEKS has one cluster and counts its calls.
type fakeEKS struct{ calls int }

func (e *fakeEKS) DescribeCluster(context.Context, string) (cloud.ClusterInfo, error) {
	e.calls++
	return cloud.ClusterInfo{Name: "demo", ARN: "arn", Endpoint: "https://eks", CABundle: "EKS=", ServiceCIDR: "10.0.0.0/16", Version: "1.34"}, nil
}

// Settings override the values that EKS reports. EKS is not called if it does not run the control plane.
func TestClusterOverrides(t *testing.T) {
	own := ClusterOverrides{Endpoint: "https://own", CABundle: "OWN=", Version: "1.35", ServiceCIDR: "fd00::/108", NoEKS: true}
	for _, tt := range []struct {
		name      string
		overrides ClusterOverrides
		want      catalog.ClusterFacts
		calls     int
	}{
		{"nothing", ClusterOverrides{}, catalog.ClusterFacts{Endpoint: "https://eks", CABundle: "EKS=", ServiceCIDR: "10.0.0.0/16", Version: "1.34", IPFamily: "ipv4"}, 1},
		{"an endpoint", ClusterOverrides{Endpoint: "https://own"}, catalog.ClusterFacts{Endpoint: "https://own", CABundle: "EKS=", ServiceCIDR: "10.0.0.0/16", Version: "1.34", IPFamily: "ipv4"}, 1},
		{"certificates", ClusterOverrides{CABundle: "OWN="}, catalog.ClusterFacts{Endpoint: "https://eks", CABundle: "OWN=", ServiceCIDR: "10.0.0.0/16", Version: "1.34", IPFamily: "ipv4"}, 1},
		{"all of it", own, catalog.ClusterFacts{Endpoint: "https://own", CABundle: "OWN=", ServiceCIDR: "fd00::/108", Version: "1.35", IPFamily: "ipv6"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, eks := newHarness(t), &fakeEKS{}
			h.Clusters, h.ClusterOverrides = eks, tt.overrides
			if err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: start}); err != nil {
				t.Fatal(err)
			}
			doc, err := blob.Get[catalog.Catalogue](t.Context(), h.blobs, lastPublished[event.CatalogRefreshed](t, h).Catalogue)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Name = "demo"
			if diff := cmp.Diff(tt.want, doc.Cluster); diff != "" || eks.calls != tt.calls {
				t.Errorf("%d calls\n%s", eks.calls, diff)
			}
		})
	}
}

func TestClusterOverridesNameMissingVariables(t *testing.T) {
	h := newHarness(t)
	h.ClusterOverrides = ClusterOverrides{NoEKS: true, Endpoint: "https://own"}
	err := h.handleFrom(t, "scheduler", event.Tick{Want: event.WantCatalogue, Due: start})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "CLUSTER_CA_BUNDLE, JOIST_KUBERNETES_VERSION not set") {
		t.Errorf("error %v, want the missing variables", err)
	}
}
