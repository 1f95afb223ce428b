package memworkload

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// collectGarbage runs the garbage collector, and removes pods whose Node is gone.
func (k *Kubernetes) collectGarbage(ctx context.Context) error {
	k.changes += k.server.CollectGarbage()
	nodes := map[string]bool{}
	for _, node := range k.nodes {
		nodes[node.Name] = true
	}
	orphans := k.orphans
	k.orphans = map[types.UID]time.Time{}
	for _, pod := range k.pods {
		if pod.Spec.NodeName == "" || nodes[pod.Spec.NodeName] {
			continue
		}
		since, known := orphans[pod.UID]
		if !known {
			since = k.now
		}
		k.orphans[pod.UID] = since
		if k.isDue(since.Add(k.options.OrphanAfter)) {
			if err := k.killPod(ctx, "pod-garbage-collector", pod); err != nil {
				return err
			}
		}
	}
	return nil
}
