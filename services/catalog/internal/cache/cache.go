// Package cache caches SSM parameters, the cluster and the catalogue's offerings in the
// memory of the process, because every node class and every inventory needs them each
// minute.
//
// Two processes may have different entries until these expire. Errors are not cached,
// except for parameters of AWS that do not exist.
package cache

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const (
	// pinnedTTL is how long the parameter of one release is cached, which AWS does not change, and
	// movingTTL that of a parameter which may change.
	pinnedTTL = 24 * time.Hour
	movingTTL = 5 * time.Minute
	// clusterTTL is for the cluster, whose version may change.
	clusterTTL = 5 * time.Minute
	// maxParameters is the size at which the cache of parameters is cleared.
	maxParameters = 4096
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
	now func() time.Time

	mu         sync.Mutex
	parameters map[string]cachedParameter
}

// NewImages returns a cache in front of port.
func NewImages(port cloud.Images, now func() time.Time) *Images {
	return &Images{Images: port, now: now, parameters: map[string]cachedParameter{}}
}

// Parameter returns the parameter's value from the cache or from SSM.
func (i *Images) Parameter(ctx context.Context, name string) (string, error) {
	i.mu.Lock()
	cached, ok := i.parameters[name]
	i.mu.Unlock()
	if ok && i.now().Before(cached.until) {
		return cached.value, cached.err
	}
	value, err := i.Images.Parameter(ctx, name)
	if err == nil || fault.Is(err, fault.Missing) && strings.HasPrefix(name, awsPrefix) {
		i.storeParameter(name, cachedParameter{value, err, i.now().Add(parameterTTL(name, err))})
	}
	return value, err
}

// parameterTTL returns how long the value is cached.
func parameterTTL(name string, err error) time.Duration {
	if err == nil && strings.HasPrefix(name, awsPrefix) && !strings.Contains(name, "recommended") && !strings.Contains(name, "latest") {
		return pinnedTTL
	}
	return movingTTL
}

func (i *Images) storeParameter(name string, a cachedParameter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.parameters) >= maxParameters {
		clear(i.parameters)
	}
	i.parameters[name] = a
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
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range selectors {
		if s.ID == "" || usable[s.ID] {
			continue
		}
		for name, a := range i.parameters {
			if a.value == s.ID && a.until.After(i.now().Add(movingTTL)) {
				a.until = i.now().Add(movingTTL)
				i.parameters[name] = a
			}
		}
	}
	return found, nil
}

// Clusters is a cloud.Clusters that caches descriptions.
type Clusters struct {
	port cloud.Clusters
	now  func() time.Time

	mu       sync.Mutex
	clusters map[string]cachedCluster
}

type cachedCluster struct {
	cloud.ClusterInfo
	until time.Time
}

// NewClusters returns a cache in front of port.
func NewClusters(port cloud.Clusters, now func() time.Time) *Clusters {
	return &Clusters{port: port, now: now, clusters: map[string]cachedCluster{}}
}

// DescribeCluster returns the cluster from the cache or from EKS.
func (c *Clusters) DescribeCluster(ctx context.Context, name string) (cloud.ClusterInfo, error) {
	c.mu.Lock()
	cached, ok := c.clusters[name]
	c.mu.Unlock()
	if ok && c.now().Before(cached.until) {
		return cached.ClusterInfo, nil
	}
	info, err := c.port.DescribeCluster(ctx, name)
	if err != nil {
		return info, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters[name] = cachedCluster{info, c.now().Add(clusterTTL)}
	return info, nil
}
