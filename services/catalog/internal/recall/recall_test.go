package recall

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// account counts what it is asked, and answers what the test says.
type account struct {
	asked int
	err   error
	found []cloud.Image
}

func (a *account) Parameter(context.Context, string) (string, error) {
	a.asked++
	return "ami-" + strconv.Itoa(a.asked), a.err
}

func (a *account) DescribeImages(context.Context, []cloud.Selector) ([]cloud.Image, error) {
	return a.found, a.err
}

func (a *account) DescribeCluster(context.Context, string) (cloud.ClusterInfo, error) {
	a.asked++
	return cloud.ClusterInfo{Version: strconv.Itoa(a.asked)}, a.err
}

const (
	release     = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20261120/image_id"
	recommended = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
	latest      = "/aws/service/bottlerocket/aws-k8s-1.36/x86_64/latest/image_id"
	mine        = "/mine/ami"
)

func TestParameters(t *testing.T) {
	missing := fault.F("reading", fault.Missing, "ParameterNotFound")
	for _, tt := range []struct {
		name, parameter string
		err             error
		after           time.Duration
		asked           int
	}{
		{"a release, for a day", release, nil, pinned - 1, 1},
		{"a release, after a day", release, nil, pinned, 2},
		{"the recommended one, for five minutes", recommended, nil, moving - 1, 1},
		{"the recommended one, after five minutes", recommended, nil, moving, 2},
		{"the latest, after five minutes", latest, nil, moving, 2},
		{"one's own, for five minutes", mine, nil, moving - 1, 1},
		{"one's own, after five minutes", mine, nil, moving, 2},
		{"AWS's that does not exist, for five minutes", release, missing, moving - 1, 1},
		{"AWS's that does not exist, after five minutes", release, missing, moving, 2},
		{"one's own that does not exist", mine, missing, 0, 2},
		{"a right that is missing", release, fault.F("reading", fault.Denied, "no"), 0, 2},
		{"a rate", release, fault.F("reading", fault.Throttled, "no"), 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			a := &account{err: tt.err}
			i := NewImages(a, func() time.Time { return now })
			for range 2 {
				value, err := i.Parameter(t.Context(), tt.parameter)
				if !errors.Is(err, tt.err) || err == nil && value == "" {
					t.Fatalf("got %q, %v", value, err)
				}
				now = now.Add(tt.after)
			}
			if a.asked != tt.asked {
				t.Fatalf("asked %d times, want %d", a.asked, tt.asked)
			}
		})
	}
}

// A release that is deprecated or gone is asked for again within minutes.
func TestInvalidation(t *testing.T) {
	for name, found := range map[string][]cloud.Image{"gone": nil, "deprecated": {{ID: "ami-1", Deprecated: true}}} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			a := &account{found: found}
			i := NewImages(a, func() time.Time { return now })
			ask := func() string {
				value, err := i.Parameter(t.Context(), release)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
			ask()
			if _, err := i.DescribeImages(t.Context(), []cloud.Selector{{ID: "ami-1"}, {Name: "x"}}); err != nil {
				t.Fatal(err)
			}
			now = now.Add(moving - 1)
			if got := ask(); got != "ami-1" {
				t.Fatalf("at once it is %s", got)
			}
			now = now.Add(1)
			if got := ask(); got != "ami-2" {
				t.Fatalf("after five minutes it is still %s", got)
			}
			if _, err := i.DescribeImages(t.Context(), []cloud.Selector{{ID: "ami-1"}}); err != nil {
				t.Fatal(err)
			}
			now = now.Add(pinned - 1)
			if got := ask(); got != "ami-2" {
				t.Fatalf("another image's end changes it to %s", got)
			}
		})
	}
}

func TestRecallIsBounded(t *testing.T) {
	a := &account{}
	i := NewImages(a, func() time.Time { return time.Unix(0, 0) })
	for n := range 3 * most {
		if _, err := i.Parameter(t.Context(), mine+strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if len(i.known) > most {
		t.Fatalf("%d are known", len(i.known))
	}
}

func TestCluster(t *testing.T) {
	now := time.Unix(0, 0)
	a := &account{err: errors.New("no")}
	c := NewClusters(a, func() time.Time { return now })
	if _, err := c.DescribeCluster(t.Context(), "web"); !errors.Is(err, a.err) {
		t.Fatalf("got %v", err)
	}
	a.err = nil
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{0, "2"}, {described - 1, "2"}, {1, "3"}} {
		now = now.Add(tt.after)
		if got, err := c.DescribeCluster(t.Context(), "web"); err != nil || got.Version != tt.want {
			t.Fatalf("after %s: version %s, want %s (%v)", tt.after, got.Version, tt.want, err)
		}
	}
}
