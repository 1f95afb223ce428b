package cache

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

// requestInterval is how often the watcher requests a node class. A result that expires within it is never used again.
const requestInterval = time.Minute

// groupCache is a cloud.Network that caches security groups.
type groupCache struct {
	cloud.Network
	now    func() time.Time
	ttl    time.Duration
	groups *lru.Cache[string, cachedGroups]
}

type cachedGroups struct {
	groups []cloud.SecurityGroup
	until  time.Time
}

// maxGroups is the number of selections that are cached, one per node class and version.
const maxGroups = 1024

// CacheSecurityGroups returns a cache of security groups in front of port, or port itself if ttl is at most the interval of the requests.
func CacheSecurityGroups(port cloud.Network, ttl time.Duration, now func() time.Time) cloud.Network {
	if ttl <= requestInterval {
		return port
	}
	return &groupCache{Network: port, now: now, ttl: ttl, groups: newLRU[cachedGroups](maxGroups)}
}

// DescribeSecurityGroups returns the groups from the cache or from EC2. An empty result is not cached, so that a group
// that is created is used at once.
func (n *groupCache) DescribeSecurityGroups(ctx context.Context, selectors []cloud.Selector) ([]cloud.SecurityGroup, error) {
	key, err := json.Marshal(selectors)
	if err != nil {
		panic("strings and maps: " + err.Error())
	}
	if cached, ok := n.groups.Get(string(key)); ok && n.now().Before(cached.until) {
		return slices.Clone(cached.groups), nil
	}
	found, err := n.Network.DescribeSecurityGroups(ctx, selectors)
	if err == nil && len(found) > 0 {
		n.groups.Add(string(key), cachedGroups{slices.Clone(found), n.now().Add(n.ttl)})
	}
	return found, err
}
