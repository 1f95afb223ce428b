package planning

import (
	"fmt"
	"math"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// BufferPriority is the priority of buffer pods: every real pod goes before them.
const BufferPriority int32 = math.MinInt32

// maxBufferPods is the maximum number of pods of one buffer.
const maxBufferPods = 10_000

// Buffer is a CapacityBuffer and the pods that it reserves capacity for.
type Buffer struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Created   time.Time `json:"created,omitzero"`
	// Spec is the spec of each pod.
	Spec PodSpec `json:"spec"`
	// Replicas and Percentage are those of the CapacityBuffer. Percentage is relative to
	// WorkloadReplicas, the replicas of its workload.
	Replicas         *int32           `json:"replicas,omitempty"`
	Percentage       *int32           `json:"percentage,omitempty"`
	WorkloadReplicas int32            `json:"scale,omitempty"`
	Limits           karpenter.Limits `json:"limits,omitempty"`
	// Problem is why the buffer reserves no capacity.
	Problem string `json:"problem,omitempty"`
}

// PodCount returns how many pods the buffer reserves capacity for: the larger of replicas and
// percentage, but at most as many as fit into the limits. With limits alone, it is as many as fit.
func (b *Buffer) PodCount() int {
	if b.Problem != "" {
		return 0
	}
	wanted, sized := int64(0), false
	if b.Replicas != nil {
		wanted, sized = int64(*b.Replicas), true
	}
	if b.Percentage != nil && b.WorkloadReplicas > 0 {
		share := (int64(*b.Percentage)*int64(b.WorkloadReplicas) + 99) / 100 // rounded up
		wanted, sized = max(wanted, share), true
	}
	if most, limited := b.maxPodsInLimits(); limited && (!sized || most < wanted) {
		wanted = most
	}
	return int(min(max(wanted, 0), maxBufferPods))
}

// maxPodsInLimits returns how many pods fit into the limits; false if no limit applies to a resource
// that the pods request.
func (b *Buffer) maxPodsInLimits() (count int64, limited bool) {
	least := math.Inf(1)
	for name, limit := range b.Limits {
		if each := b.Spec.Requests[name]; each.Sign() > 0 {
			least = min(least, math.Floor(limit.AsApproximateFloat64()/each.AsApproximateFloat64()))
		}
	}
	if math.IsInf(least, 1) {
		return 0, false
	}
	return int64(min(least, maxBufferPods)), true
}

// NewBufferPods returns the pods of the buffers, in classes. Their names and UIDs are the ones that
// Karpenter uses, so they are the same in each batch. They have the labels of the pod template, so that its rules on
// spread and affinity separate them.
func NewBufferPods(buffers []Buffer) []PodClass {
	var out []PodClass
	for i := range buffers {
		b := &buffers[i]
		count := b.PodCount()
		if count == 0 {
			continue
		}
		class := PodClass{Spec: b.Spec, Pods: make([]PodRef, count)}
		class.Spec.Namespace, class.Spec.Priority = b.Namespace, BufferPriority
		for n := range class.Pods {
			class.Pods[n] = PodRef{
				Name: fmt.Sprintf("capacity-buffer-%s-%d", b.Name, n+1), UID: fmt.Sprintf("%s-%d", b.UID, n+1),
				Created: b.Created, Buffer: b.Name,
			}
		}
		out = append(out, class)
	}
	return out
}
