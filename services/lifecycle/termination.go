package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// terminationView collects the input for a claim that is being deleted or whose node is being rebooted.
func (s *Service) terminationView(v nodeclaim.View, w clusterState) nodeclaim.Termination {
	if v.Claim.DeletionTimestamp == nil && !v.Claim.IsRebooting() {
		return nodeclaim.Termination{}
	}
	out := nodeclaim.Termination{
		MayEvict: s.evictions.MayRemove, MayDelete: s.deletions.MayRemove, EvictionResult: s.evictionResult,
		Budgets: w.budgets, VolumeClaim: w.volumeClaim, Replacement: w.findClaim,
	}
	for _, node := range v.AllNodes() {
		out.Attachments = append(out.Attachments, w.attachments(node.Name)...)
	}
	out.PodsNow = func() ([]*corev1.Pod, bool) { return s.readAllPods(v.AllNodes(), w) }
	out.Live = func() (*karpenter.NodeClaim, *corev1.Node) { return s.readLive(v, w) }
	return out
}

// readLive reads a claim and its node; nil for each that is gone or cannot be read. An error is reported by the reconcile.
func (s *Service) readLive(v nodeclaim.View, w clusterState) (*karpenter.NodeClaim, *corev1.Node) {
	claim, err := w.liveClaim(v.Claim.Name)
	var node *corev1.Node
	if err == nil {
		node, err = w.liveNode(v.Node.Name)
	}
	if err != nil && !fault.Is(err, fault.Missing) {
		s.liveReadErrors = append(s.liveReadErrors, fmt.Errorf("reading NodeClaim %s and its node before the next step of its reboot: %w", v.Claim.Name, err))
	}
	return claim, node
}

// readAllPods reads the pods of nodes that seem empty; false if the pods of one cannot be read.
func (s *Service) readAllPods(nodes []*corev1.Node, w clusterState) ([]*corev1.Pod, bool) {
	var all []*corev1.Pod
	for _, node := range nodes {
		pods, read := s.readPods(node, w)
		if !read {
			return nil, false
		}
		all = append(all, pods...)
	}
	return all, true
}

// readPods reads the pods of a node that seems empty. An error is reported by the reconcile. If the replica was
// paused, another node may have the name by now, with pods that must stay.
func (s *Service) readPods(node *corev1.Node, w clusterState) ([]*corev1.Pod, bool) {
	pods, err := w.livePods(node.Name)
	if err == nil && len(pods) > 0 {
		var now *corev1.Node
		if now, err = w.liveNode(node.Name); err == nil && now.UID != node.UID {
			err = fault.F("comparing the node", fault.Conflict, "another node has the name %s", node.Name)
		}
		if fault.Is(err, fault.Missing) {
			return nil, true // Its pods are lost.
		}
	}
	if err != nil {
		s.liveReadErrors = append(s.liveReadErrors, fmt.Errorf("reading the pods of node %s before its termination: %w", node.Name, err))
	}
	return pods, err == nil
}

// evictionResult returns the error of the last request to remove the pod, and since when requests
// are rejected. A pod is evicted before it is deleted.
func (s *Service) evictionResult(pod *corev1.Pod) (time.Time, error) {
	eviction, _ := s.evictions.LastAttempt(pod)
	if deletion, ok := s.deletions.LastAttempt(pod); ok {
		return nodeclaim.EarlierOf(eviction.Since, deletion.Since), deletion.Err
	}
	return eviction.Since, eviction.Err
}
