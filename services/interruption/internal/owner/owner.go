// Package owner finds out whose instances an event speaks of: with one call for
// all that ask at the same time, and with none for those that are known.
//
// An instance's owner never changes and its id is never given again, so what is
// known is only ever forgotten: when a book is full the oldest goes. Losing all
// of it costs calls and nothing else.
//
//   - What is somebody else's is remembered, for a rule sees the whole account,
//     and most of it is not ours.
//   - What is ours is remembered as it was seen, which is good for everything but
//     its state.
//   - What EC2 does not show may be too young to be shown. It is remembered only
//     of events that are old enough, and not for long.
package owner

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// hasClusterTags reports whether the instance carries the tags of a node of the cluster whose
// tag has the key.
func hasClusterTags(i *cloud.Instance, key string) bool {
	return i.Tags[key] == "owned" && i.Tags[karpenter.NodePoolTagKey] != ""
}
