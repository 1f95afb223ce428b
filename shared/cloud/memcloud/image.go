package memcloud

import (
	"context"
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// AddImage adds an AMI. An empty ID is generated; an empty owner is the account.
func (c *Cloud) AddImage(i cloud.Image) cloud.Image {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.ID == "" {
		i.ID = c.identify("ami")
	}
	if i.Owner == "" {
		i.Owner = c.options.Account
	}
	if i.Created.IsZero() {
		i.Created = c.clock
	}
	i.Tags = maps.Clone(i.Tags)
	c.images = append(c.images, i)
	return i
}

// DescribeImages returns the images that match any selector, in the order in which they were added.
func (c *Cloud) DescribeImages(ctx context.Context, selectors []cloud.Selector) ([]cloud.Image, error) {
	var out []cloud.Image
	err := c.call(ctx, DescribeImages, func(time.Time) error {
		for _, i := range c.images {
			if c.finds(selectors, thing{id: i.ID, name: i.Name, owner: i.Owner, owned: true, tags: i.Tags}) {
				i.Tags = maps.Clone(i.Tags)
				out = append(out, i)
			}
		}
		return nil
	})
	return out, err
}

// SetParameter sets an SSM parameter.
func (c *Cloud) SetParameter(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.params[name] = value
}

// Parameter reads an SSM parameter.
func (c *Cloud) Parameter(ctx context.Context, name string) (string, error) {
	var out string
	err := c.call(ctx, GetParameter, func(time.Time) error {
		value, ok := c.params[name]
		if !ok {
			return refuse(fault.Missing, "ParameterNotFound", "There is no parameter %s.", name)
		}
		out = value
		return nil
	})
	return out, err
}

// AddCluster adds an EKS cluster.
func (c *Cloud) AddCluster(info cloud.ClusterInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters[info.Name] = info
}

// DescribeCluster reads an EKS cluster.
func (c *Cloud) DescribeCluster(ctx context.Context, name string) (cloud.ClusterInfo, error) {
	var out cloud.ClusterInfo
	err := c.call(ctx, DescribeCluster, func(time.Time) error {
		info, ok := c.clusters[name]
		if !ok {
			return refuse(fault.Missing, "ResourceNotFoundException", "No cluster found for name: %s.", name)
		}
		out = info
		return nil
	})
	return out, err
}
