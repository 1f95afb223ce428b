package cache

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// fakeAWS counts its calls and returns the configured results.
type fakeAWS struct {
	calls int
	err   error
	found []cloud.Image
}

func (a *fakeAWS) Parameter(context.Context, string) (string, error) {
	a.calls++
	return "ami-" + strconv.Itoa(a.calls), a.err
}

func (a *fakeAWS) DescribeImages(context.Context, []cloud.Selector) ([]cloud.Image, error) {
	return a.found, a.err
}

func (a *fakeAWS) DescribeCluster(context.Context, string) (cloud.ClusterInfo, error) {
	a.calls++
	return cloud.ClusterInfo{Version: strconv.Itoa(a.calls)}, a.err
}

const (
	release      = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20261120/image_id"
	recommended  = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
	latest       = "/aws/service/bottlerocket/aws-k8s-1.36/x86_64/latest/image_id"
	canonical    = "/aws/service/canonical/ubuntu/eks/24.04/1.36/stable/current/amd64/hvm/ebs-gp3/ami-id"
	ownParameter = "/mine/ami"
)

func TestParameterCache(t *testing.T) {
	missing := fault.F("reading", fault.Missing, "ParameterNotFound")
	for _, tt := range []struct {
		name, parameter string
		err             error
		after           time.Duration
		calls           int
	}{
		{"a release, for a day", release, nil, pinnedTTL - 1, 1},
		{"a release, after a day", release, nil, pinnedTTL, 2},
		{"the recommended one, for five minutes", recommended, nil, movingTTL - 1, 1},
		{"the recommended one, after five minutes", recommended, nil, movingTTL, 2},
		{"the latest, after five minutes", latest, nil, movingTTL, 2},
		{"Canonical's current one, after five minutes", canonical, nil, movingTTL, 2},
		{"a user's parameter, for five minutes", ownParameter, nil, movingTTL - 1, 1},
		{"a user's parameter, after five minutes", ownParameter, nil, movingTTL, 2},
		{"a missing parameter of AWS, for five minutes", release, missing, movingTTL - 1, 1},
		{"a missing parameter of AWS, after five minutes", release, missing, movingTTL, 2},
		{"a missing parameter of the user", ownParameter, missing, 0, 2},
		{"access denied", release, fault.F("reading", fault.Denied, "no"), 0, 2},
		{"throttled", release, fault.F("reading", fault.Throttled, "no"), 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			a := &fakeAWS{err: tt.err}
			i := NewImages(a, func() time.Time { return now })
			for range 2 {
				value, err := i.Parameter(t.Context(), tt.parameter)
				if !errors.Is(err, tt.err) || err == nil && value == "" {
					t.Fatalf("got %q, %v", value, err)
				}
				now = now.Add(tt.after)
			}
			if a.calls != tt.calls {
				t.Fatalf("%d calls, want %d", a.calls, tt.calls)
			}
		})
	}
}

// The parameter of a deprecated or deleted image expires within minutes.
func TestDeprecatedImageShortensTTL(t *testing.T) {
	for name, found := range map[string][]cloud.Image{"deleted": nil, "deprecated": {{ID: "ami-1", Deprecated: true}}} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			a := &fakeAWS{found: found}
			i := NewImages(a, func() time.Time { return now })
			read := func() string {
				value, err := i.Parameter(t.Context(), release)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
			read()
			if _, err := i.DescribeImages(t.Context(), []cloud.Selector{{ID: "ami-1"}, {Name: "x"}}); err != nil {
				t.Fatal(err)
			}
			now = now.Add(movingTTL - 1)
			if got := read(); got != "ami-1" {
				t.Fatalf("value %s before movingTTL, want ami-1", got)
			}
			now = now.Add(1)
			if got := read(); got != "ami-2" {
				t.Fatalf("value %s after movingTTL, want ami-2", got)
			}
			if _, err := i.DescribeImages(t.Context(), []cloud.Selector{{ID: "ami-1"}}); err != nil {
				t.Fatal(err)
			}
			now = now.Add(pinnedTTL - 1)
			if got := read(); got != "ami-2" {
				t.Fatalf("value %s after another image was deleted, want ami-2", got)
			}
		})
	}
}

func TestParameterCacheIsBounded(t *testing.T) {
	a := &fakeAWS{}
	i := NewImages(a, func() time.Time { return time.Unix(0, 0) })
	for n := range 3 * maxParameters {
		if _, err := i.Parameter(t.Context(), ownParameter+strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if i.parameters.Len() > maxParameters {
		t.Fatalf("%d cached parameters", i.parameters.Len())
	}
}

func TestClusterCache(t *testing.T) {
	now := time.Unix(0, 0)
	a := &fakeAWS{err: errors.New("no")}
	c := NewClusters(a, func() time.Time { return now })
	if _, err := c.DescribeCluster(t.Context(), "web"); !errors.Is(err, a.err) {
		t.Fatalf("got %v", err)
	}
	a.err = nil
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{0, "2"}, {clusterTTL - 1, "2"}, {1, "3"}} {
		now = now.Add(tt.after)
		if got, err := c.DescribeCluster(t.Context(), "web"); err != nil || got.Version != tt.want {
			t.Fatalf("after %s: version %s, want %s (%v)", tt.after, got.Version, tt.want, err)
		}
	}
}
