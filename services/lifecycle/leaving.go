package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
)

// redelete is how often a pod is deleted again that does not go.
const redelete = time.Second

// leaving gathers what the decision about a claim on its way out looks at beside
// the view itself.
func (s *Service) leaving(v nodeclaim.View, w world) nodeclaim.Leaving {
	if v.Claim.DeletionTimestamp == nil {
		return nodeclaim.Leaving{}
	}
	out := nodeclaim.Leaving{
		MayEvict: s.removals.May, MayDelete: s.mayDelete, Answer: s.answer,
		Budgets: w.budgets, VolumeClaim: w.volumeClaim, Replacement: w.claim,
	}
	if v.Node != nil {
		out.Attachments = w.attachments(v.Node.Name)
		out.PodsNow = func() ([]*corev1.Pod, bool) { return s.podsNow(v.Node.Name, w) }
	}
	return out
}

// podsNow reads the pods of a node that seems empty. When it cannot, the look says
// so.
func (s *Service) podsNow(node string, w world) ([]*corev1.Pod, bool) {
	pods, err := w.podsNow(node)
	if err != nil {
		s.unread = append(s.unread, fmt.Errorf("reading the pods of node %s before its end: %w", node, err))
	}
	return pods, err == nil
}

// mayDelete keeps the deletions of one pod apart. They are not kept to the backoff
// of evictions: no budget forbids them, and their time has come.
func (s *Service) mayDelete(pod *corev1.Pod) bool {
	return s.due("delete/"+string(pod.UID), redelete)
}

// answer is what the last request to remove the pod came to.
func (s *Service) answer(pod *corev1.Pod) (time.Time, error) {
	try, _ := s.removals.Answer(pod)
	return try.Since, try.Err
}
