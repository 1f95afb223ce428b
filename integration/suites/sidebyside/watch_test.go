package sidebyside

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
)

// sampleEvery is the interval of samples, in real time.
const sampleEvery = 500 * time.Millisecond

// evictedReason is the reason of the condition DisruptionTarget that the eviction API sets.
const evictedReason = "EvictionByEvictionAPI"

// recorder measures one side. Its lock protects all fields below it.
type recorder struct {
	*testbed.TestBed
	// fleet returns the billed instances, by id. Their times are not set.
	fleet func() (map[string]NodeLife, error)

	mu   sync.Mutex
	side DayMeasurements
	// clock returns the time of day; nil outside of the day.
	clock func() time.Duration
	// created are the pods of the day that are not ready yet, with the real time of their creation.
	created map[types.UID]time.Time
	// evicted and lost are the deleted pods.
	evicted, lost map[types.UID]bool
	// losses describe the pods of lost.
	losses []string
	// known are the billed instances, and ended the ones that were removed during the day.
	known map[string]NodeLife
	ended []NodeLife
	loads []float64
	// before are the CPU seconds at the beginning of the day.
	before map[string]float64
}

func newRecorder(w *testbed.TestBed, name string, fleet func() (map[string]NodeLife, error)) *recorder {
	r := &recorder{
		TestBed: w, fleet: fleet, side: DayMeasurements{Name: name},
		created: map[types.UID]time.Time{}, evicted: map[types.UID]bool{}, lost: map[types.UID]bool{},
	}
	factory := informers.NewSharedInformerFactory(w.Kube, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.recordPod(object) },
		UpdateFunc: func(_, object any) { r.recordPod(object) },
		DeleteFunc: func(object any) { r.recordPod(object) },
	})
	w.RequireNoError(err)
	factory.Start(w.Ctx.Done())
	factory.WaitForCacheSync(w.Ctx.Done())
	w.RunInBackground(sampleEvery, r.takeSample)
	return r
}

// recordPod records the start and the end of a pod.
func (r *recorder) recordPod(object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	pod, is := object.(*corev1.Pod)
	if !is {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock == nil {
		return
	}
	if pod.DeletionTimestamp != nil {
		delete(r.created, pod.UID)
		r.recordEnd(pod)
		return
	}
	began, waits := r.created[pod.UID]
	switch ready := testbed.IsPodReady(pod); {
	case !waits && !ready && pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "":
		r.created[pod.UID] = now
	case waits && ready:
		delete(r.created, pod.UID)
		r.side.Starts = append(r.side.Starts, now.Sub(began))
	}
}

// recordEnd counts a pod that is being deleted because of its node.
func (r *recorder) recordEnd(pod *corev1.Pod) {
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Reason == evictedReason {
			r.evicted[pod.UID] = true
		} else if !r.lost[pod.UID] && !r.evicted[pod.UID] {
			// The garbage collector of Kubernetes replaces the reason of an evicted pod that still exists after its Node.
			r.lost[pod.UID] = true
			r.losses = append(r.losses, r.describeLoss(pod, c))
		}
	}
}

// describeLoss describes a pod that was deleted with its node: who deleted it, and whether it was bound after the drain of the
// node began.
func (r *recorder) describeLoss(pod *corev1.Pod, why corev1.PodCondition) string {
	bound := ""
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			bound = c.LastTransitionTime.Format(time.TimeOnly)
		}
	}
	return fmt.Sprintf("pod %s of node %s (created %s, bound %s, being deleted since %s) has the reason %s of %s: %s", pod.Name, pod.Spec.NodeName,
		pod.CreationTimestamp.Format(time.TimeOnly), bound, pod.DeletionTimestamp.Format(time.TimeOnly), why.Reason, why.LastTransitionTime.Format(time.TimeOnly), why.Message)
}

// takeSample records the state of the cluster.
func (r *recorder) takeSample() error {
	pods := cluster.ListCached[*corev1.Pod](r.Cache, cluster.Pods)
	fleet, err := r.fleet()
	if err != nil {
		return err
	}
	one := DaySample{Nodes: len(fleet)}
	for _, node := range fleet {
		one.PerHour += node.PerHour
	}
	for _, pod := range pods {
		switch {
		case pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName == "":
			one.Pending++
		case testbed.IsPodReady(pod):
			one.Running++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock == nil {
		r.recordNodes(fleet, 0)
		r.ended = nil
		return nil
	}
	one.At, one.Evicted = r.clock(), len(r.evicted)
	r.recordNodes(fleet, one.At)
	r.side.Samples = append(r.side.Samples, one)
	if average, err := loadAverage(); err == nil {
		r.loads = append(r.loads, average)
	}
	return nil
}

// recordNodes records which nodes came and went since the last sample.
func (r *recorder) recordNodes(fleet map[string]NodeLife, at time.Duration) {
	for id, node := range fleet {
		node.Name, node.From = id, at
		if old, is := r.known[id]; is {
			node = old
		}
		fleet[id] = node
	}
	for id, node := range r.known {
		if _, remains := fleet[id]; !remains {
			node.To = at
			r.ended = append(r.ended, node)
		}
	}
	r.known = fleet
}

func loadAverage() (float64, error) {
	machine, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	average, err := machine.LoadAvg()
	if err != nil {
		return 0, err
	}
	return average.Load1, nil
}

// begin starts the day, and end stops it and returns the measurements.
func (r *recorder) begin(fill time.Duration, clock func() time.Duration) {
	before := r.CPUSeconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.side.Fill, r.clock, r.before = fill, clock, before
}

func (r *recorder) end() DayMeasurements {
	after := r.CPUSeconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = nil
	s := r.side
	s.CPUSeconds = map[string]float64{}
	for name, seconds := range after {
		s.CPUSeconds[name] = seconds - r.before[name]
	}
	for _, average := range r.loads {
		s.LoadAverage += average / float64(len(r.loads))
	}
	s.Fleet = slices.AppendSeq(slices.Clone(r.ended), maps.Values(r.known))
	slices.SortFunc(s.Fleet, func(a, b NodeLife) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Name, b.Name)) })
	s.Evicted, s.Lost = len(r.evicted), len(r.lost)
	for _, loss := range r.losses {
		r.Logf("%s", loss)
	}
	slices.Sort(s.Starts)
	return s
}

// settled reports whether exactly so many pods run and none is pending.
func (r *recorder) settled(wanted int) bool {
	running := 0
	for _, pod := range cluster.ListCached[*corev1.Pod](r.Cache, cluster.Pods) {
		if pod.DeletionTimestamp != nil || !testbed.IsPodReady(pod) {
			return false
		}
		running++
	}
	return running == wanted
}
