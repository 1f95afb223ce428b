package planning

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// LaunchHistoryAnnotation is the annotation of a NodePool in which lifecycle stores the results of its
// last launches, as JSON.
const LaunchHistoryAnnotation = "joist.sh/registrations"

// LaunchHistory is the results of the last launches of a NodePool, oldest first.
type LaunchHistory struct {
	// PoolGeneration and ClassGeneration are the generations of the NodePool and its class to which
	// the results belong.
	PoolGeneration  int64 `json:"poolGeneration"`
	ClassGeneration int64 `json:"classGeneration"`
	// Since is the start of the history; earlier results do not count.
	Since   time.Time      `json:"since"`
	Records []LaunchRecord `json:"records,omitempty"`
}

// LaunchRecord is the result of one launch.
type LaunchRecord struct {
	Claim types.UID `json:"claim,omitempty"`
	At    time.Time `json:"at"`
	OK    bool      `json:"ok,omitempty"`
	// Reason and Message are why it failed. Image is the image that its instance booted, if there was
	// one.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Image   string `json:"image,omitempty"`
}

// ReadLaunchHistory returns the history of a NodePool; false if the annotation is missing or invalid.
func ReadLaunchHistory(pool *karpenter.NodePool) (LaunchHistory, bool) {
	var out LaunchHistory
	err := json.Unmarshal([]byte(pool.Annotations[LaunchHistoryAnnotation]), &out)
	return out, err == nil
}
