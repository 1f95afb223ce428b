// Package cache caches SSM parameters, security groups, the cluster and the catalogue's offerings
// in the memory of the process, because every node class and every inventory needs them each
// minute.
//
// Two processes may have different entries until these expire. Errors are not cached,
// except for parameters of AWS that do not exist.
package cache

import (
	"context"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// pinnedTTL is how long the parameter of one release of EKS or Bottlerocket is cached, which AWS
	// does not change, and movingTTL that of a parameter which may change. Others below awsPrefix have
	// names of which that is not known: Canonical's .../stable/current/... changes with each release.
	pinnedTTL = 24 * time.Hour
	movingTTL = 5 * time.Minute
	// clusterTTL is for the cluster, whose version may change.
	clusterTTL = 5 * time.Minute
	// maxParameters and maxClusters are the sizes of the caches.
	maxParameters = 4096
	maxClusters   = 16
	// awsPrefix is the prefix of AWS's public parameters.
	awsPrefix = "/aws/service/"
)

// cachedParameter is the value of a parameter; err is fault.Missing or nil.
type cachedParameter struct {
	value string
	err   error
	until time.Time
}

// Images is a cloud.Images that caches SSM parameters.
type Images struct {
	cloud.Images
	now        func() time.Time
	parameters *lru.Cache[string, cachedParameter]
}

// NewImages returns a cache in front of port.
func NewImages(port cloud.Images, now func() time.Time) *Images {
	return &Images{Images: port, now: now, parameters: newLRU[cachedParameter](maxParameters)}
}

func newLRU[V any](size int) *lru.Cache[string, V] {
	cache, _ := lru.New[string, V](size) // It fails only if the size is not positive.
	return cache
}

// Parameter returns the parameter's value from the cache or from SSM.
func (i *Images) Parameter(ctx context.Context, name string) (string, error) {
	if cached, ok := i.parameters.Get(name); ok && i.now().Before(cached.until) {
		return cached.value, cached.err
	}
	value, err := i.Images.Parameter(ctx, name)
	if err == nil || fault.Is(err, fault.Missing) && strings.HasPrefix(name, awsPrefix) {
		i.parameters.Add(name, cachedParameter{value, err, i.now().Add(parameterTTL(name, err))})
	}
	return value, err
}

// parameterTTL returns how long the value is cached.
func parameterTTL(name string, err error) time.Duration {
	hasReleases := strings.HasPrefix(name, awsPrefix+"eks/") || strings.HasPrefix(name, awsPrefix+"bottlerocket/")
	if err == nil && hasReleases && !strings.Contains(name, "recommended") && !strings.Contains(name, "latest") {
		return pinnedTTL
	}
	return movingTTL
}

// DescribeImages returns the selected images. It shortens the TTL of parameters whose image
// is deprecated or missing, because their value may have changed.
func (i *Images) DescribeImages(ctx context.Context, selectors []cloud.Selector) ([]cloud.Image, error) {
	found, err := i.Images.DescribeImages(ctx, selectors)
	if err != nil {
		return found, err
	}
	usable := map[string]bool{}
	for _, image := range found {
		usable[image.ID] = !image.Deprecated
	}
	soon := i.now().Add(movingTTL)
	for _, s := range selectors {
		if s.ID == "" || usable[s.ID] {
			continue
		}
		for _, name := range i.parameters.Keys() {
			if a, ok := i.parameters.Peek(name); ok && a.value == s.ID && a.until.After(soon) {
				a.until = soon
				i.parameters.Add(name, a)
			}
		}
	}
	return found, nil
}

// Clusters is a cloud.Clusters that caches descriptions.
type Clusters struct {
	port     cloud.Clusters
	now      func() time.Time
	clusters *lru.Cache[string, cachedCluster]
}

type cachedCluster struct {
	cloud.ClusterInfo
	until time.Time
}

// NewClusters returns a cache in front of port.
func NewClusters(port cloud.Clusters, now func() time.Time) *Clusters {
	return &Clusters{port: port, now: now, clusters: newLRU[cachedCluster](maxClusters)}
}

// DescribeCluster returns the cluster from the cache or from EKS.
func (c *Clusters) DescribeCluster(ctx context.Context, name string) (cloud.ClusterInfo, error) {
	if cached, ok := c.clusters.Get(name); ok && c.now().Before(cached.until) {
		return cached.ClusterInfo, nil
	}
	info, err := c.port.DescribeCluster(ctx, name)
	if err != nil {
		return info, err
	}
	c.clusters.Add(name, cachedCluster{info, c.now().Add(clusterTTL)})
	return info, nil
}
