// Package recall remembers for a while what SSM and EKS have said, because every
// class asks them the same, every minute, and which instance types the
// catalogue has, because every inventory does.
//
// What is remembered is in the process's memory and nowhere else, and nothing
// rests on it: a process that has just started asks again, and two processes may
// remember different things until the shorter of the times below. Errors are never
// remembered, but for a parameter of AWS's own that does not exist.
package recall

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// pinned is how long the parameter of one release is remembered, which AWS
	// does not change, and moving that of a parameter which may change.
	pinned = 24 * time.Hour
	moving = 5 * time.Minute
	// described is how long a cluster is remembered: its version rises.
	described = 5 * time.Minute
	// most is how many answers are kept; more are forgotten all at once.
	most = 4096
	// published is where AWS has its own parameters.
	published = "/aws/service/"
)

// answer is what was said of a parameter; err is fault.Missing or nil.
type answer struct {
	value string
	err   error
	until time.Time
}

// Images remembers the parameters that an Images reads.
type Images struct {
	cloud.Images
	now func() time.Time

	mu    sync.Mutex
	known map[string]answer
}

// NewImages remembers over the port.
func NewImages(port cloud.Images, now func() time.Time) *Images {
	return &Images{Images: port, now: now, known: map[string]answer{}}
}

// Parameter reads the parameter, or remembers it.
func (i *Images) Parameter(ctx context.Context, name string) (string, error) {
	i.mu.Lock()
	have, ok := i.known[name]
	i.mu.Unlock()
	if ok && i.now().Before(have.until) {
		return have.value, have.err
	}
	value, err := i.Images.Parameter(ctx, name)
	if err == nil || fault.Is(err, fault.Missing) && strings.HasPrefix(name, published) {
		i.keep(name, answer{value, err, i.now().Add(life(name, err))})
	}
	return value, err
}

// life is how long the answer is good for.
func life(name string, err error) time.Duration {
	if err == nil && strings.HasPrefix(name, published) && !strings.Contains(name, "recommended") && !strings.Contains(name, "latest") {
		return pinned
	}
	return moving
}

func (i *Images) keep(name string, a answer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= most {
		clear(i.known)
	}
	i.known[name] = a
}

// DescribeImages describes images. A parameter that named one which is deprecated
// or not there any more is asked for again soon: perhaps it names another by now.
func (i *Images) DescribeImages(ctx context.Context, selectors []cloud.Selector) ([]cloud.Image, error) {
	found, err := i.Images.DescribeImages(ctx, selectors)
	if err != nil {
		return found, err
	}
	fine := map[string]bool{}
	for _, image := range found {
		fine[image.ID] = !image.Deprecated
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range selectors {
		if s.ID == "" || fine[s.ID] {
			continue
		}
		for name, a := range i.known {
			if a.value == s.ID && a.until.After(i.now().Add(moving)) {
				a.until = i.now().Add(moving)
				i.known[name] = a
			}
		}
	}
	return found, nil
}

// Clusters remembers what a Clusters describes.
type Clusters struct {
	port cloud.Clusters
	now  func() time.Time

	mu    sync.Mutex
	known map[string]cluster
}

type cluster struct {
	cloud.ClusterInfo
	until time.Time
}

// NewClusters remembers over the port.
func NewClusters(port cloud.Clusters, now func() time.Time) *Clusters {
	return &Clusters{port: port, now: now, known: map[string]cluster{}}
}

// DescribeCluster reads the cluster, or remembers it.
func (c *Clusters) DescribeCluster(ctx context.Context, name string) (cloud.ClusterInfo, error) {
	c.mu.Lock()
	have, ok := c.known[name]
	c.mu.Unlock()
	if ok && c.now().Before(have.until) {
		return have.ClusterInfo, nil
	}
	info, err := c.port.DescribeCluster(ctx, name)
	if err != nil {
		return info, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[name] = cluster{info, c.now().Add(described)}
	return info, nil
}
