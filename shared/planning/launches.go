package planning

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// LaunchesAnnotation is where lifecycle remembers, on a NodePool and as JSON, how its
// last launches ended.
const LaunchesAnnotation = "joist.sh/registrations"

// Launches is how the last launches of a NodePool ended, oldest first.
type Launches struct {
	// Pool and Class are the generations of the pool and of its class that they speak of.
	Pool  int64 `json:"pool"`
	Class int64 `json:"class"`
	// Since is when they began to count; what ended before does not.
	Since time.Time `json:"since"`
	Last  []Launch  `json:"last,omitempty"`
}

// Launch is how one launch ended.
type Launch struct {
	Claim types.UID `json:"claim,omitempty"`
	At    time.Time `json:"at"`
	OK    bool      `json:"ok,omitempty"`
	// Reason and Message say why it failed, and Image is what its instance booted, where
	// there was one.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Image   string `json:"image,omitempty"`
}

// LaunchesOf reads what a NodePool remembers; false where it is nothing that can be
// read.
func LaunchesOf(pool *karpenter.NodePool) (Launches, bool) {
	var out Launches
	err := json.Unmarshal([]byte(pool.Annotations[LaunchesAnnotation]), &out)
	return out, err == nil
}
