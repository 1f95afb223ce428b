package planning

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// LaunchHistoryAnnotation is where lifecycle remembers, on a NodePool and as JSON, how its
// last launches ended.
const LaunchHistoryAnnotation = "joist.sh/registrations"

// LaunchHistory is how the last launches of a NodePool ended, oldest first.
type LaunchHistory struct {
	// PoolGeneration and Class are the generations of the pool and of its class that they speak of.
	PoolGeneration  int64 `json:"pool"`
	ClassGeneration int64 `json:"class"`
	// Since is when they began to count; what ended before does not.
	Since   time.Time      `json:"since"`
	Records []LaunchRecord `json:"last,omitempty"`
}

// LaunchRecord is how one launch ended.
type LaunchRecord struct {
	Claim types.UID `json:"claim,omitempty"`
	At    time.Time `json:"at"`
	OK    bool      `json:"ok,omitempty"`
	// Reason and Message say why it failed, and Image is what its instance booted, where
	// there was one.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Image   string `json:"image,omitempty"`
}

// ReadLaunchHistory reads what a NodePool remembers; false where it is nothing that can be
// read.
func ReadLaunchHistory(pool *karpenter.NodePool) (LaunchHistory, bool) {
	var out LaunchHistory
	err := json.Unmarshal([]byte(pool.Annotations[LaunchHistoryAnnotation]), &out)
	return out, err == nil
}
