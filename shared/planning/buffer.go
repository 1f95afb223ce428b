package planning

import (
	"fmt"
	"math"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// BufferPriority is that of pods that do not exist: any real one goes before them.
const BufferPriority int32 = math.MinInt32

// maxBufferPods bounds how many pods one buffer keeps room for, however its limits
// were written.
const maxBufferPods = 10_000

// Buffer is a CapacityBuffer with what it names.
type Buffer struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Created   time.Time `json:"created,omitzero"`
	// Spec is what each of its pods would be like.
	Spec PodSpec `json:"spec"`
	// Replicas and Percentage are as the user wrote them; the percentage is of
	// Scale, how many pods the workload has.
	Replicas         *int32           `json:"replicas,omitempty"`
	Percentage       *int32           `json:"percentage,omitempty"`
	WorkloadReplicas int32            `json:"scale,omitempty"`
	Limits           karpenter.Limits `json:"limits,omitempty"`
	// Problem says why no room is kept.
	Problem string `json:"problem,omitempty"`
}

// PodCount is for how many pods room is kept: for the larger of replicas and
// percentage, and never for more than the limits hold. Limits alone are filled.
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

// maxPodsInLimits is how many pods the limits hold. Limits on what the pods do not ask for
// limit nothing.
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

// NewBufferPods are the pods that the buffers keep room for, in classes. They have
// the names and UIDs that Karpenter gives them, so that they are the same pods in
// each batch, and no labels: no selector counts what does not exist.
func NewBufferPods(buffers []Buffer) []PodClass {
	var out []PodClass
	for i := range buffers {
		b := &buffers[i]
		count := b.PodCount()
		if count == 0 {
			continue
		}
		class := PodClass{Spec: b.Spec, Pods: make([]PodRef, count)}
		class.Spec.Namespace, class.Spec.Labels, class.Spec.Priority = b.Namespace, nil, BufferPriority
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
