package sim

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

// checkReservations checks that no reservation has more instances than its size.
func (c *checker) checkReservations(records []memcloud.Record) {
	count := map[string]int{}
	for _, r := range records {
		if r.Reservation != "" && r.Gone.IsZero() {
			count[r.Reservation]++
			c.occurrences["ran in a reservation"] = 1
		}
	}
	for id, n := range count {
		if n > reservedCount {
			c.reportViolation("no reservation is exceeded", "reservation %s has %d instances of %d", id, n, reservedCount)
		}
	}
}

// checkDeletionCost checks a deletion cost that lifecycle writes: only pods of ReplicaSets have one, and it is
// negative.
func (c *checker) checkDeletionCost(e memcluster.Effect) {
	pod, ok := e.After.(*corev1.Pod)
	if !ok || !strings.HasPrefix(e.Actor, "lifecycle-") {
		return
	}
	text, has := pod.Annotations[corev1.PodDeletionCost]
	before, _ := e.Before.(*corev1.Pod)
	if !has || before != nil && before.Annotations[corev1.PodDeletionCost] == text {
		return
	}
	c.occurrences["deletion cost written"]++
	owner := metav1.GetControllerOf(pod)
	if rank, err := strconv.Atoi(text); owner == nil || owner.Kind != "ReplicaSet" || err != nil || rank >= 0 {
		c.reportViolation("only pods of ReplicaSets have a deletion cost", "%s wrote %q on %s of %+v", e.Actor, text, e.Key, owner)
	}
}
