// Package owner finds the owners of instances: one call to EC2 for all concurrent lookups, and none
// for cached instances.
//
// The owner of an instance never changes and IDs are not reused, so the cache only evicts the
// oldest entries. Losing the cache only costs calls.
//   - Foreign instances are cached, because the event rules match the whole account.
//   - Owned instances are cached with their properties; all properties except the state stay correct.
//   - Instances that EC2 does not return may be too new. They are cached only for events that are old
//     enough, and for a limited time.
package owner

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// hasClusterTags reports whether the instance is a node of the cluster: it has the
// cluster's tag, whose key is given, and a NodePool tag, which is empty for a NodeClaim without a NodePool.
func hasClusterTags(i *cloud.Instance, key string) bool {
	_, tagged := i.Tags[karpenter.NodePoolTagKey]
	return i.Tags[key] == "owned" && tagged
}
