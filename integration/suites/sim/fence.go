package sim

import (
	"context"
	"encoding/json"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// fence watches the outbox from outside.
type fence struct {
	seq  uint64
	done []string
}

// outbox is the part of it that the fence reads.
type outbox struct {
	Seq    uint64   `json:"seq"`
	State  string   `json:"state"`
	Claims []string `json:"claims"`
	Plan   string   `json:"plan"`
	Batch  struct {
		Digest string `json:"digest"`
	} `json:"batch"`
}

// look: a batch knows every claim of the plan before it that is still there.
// Otherwise two plans would be made from the same free capacity. And it holds no pod
// that runs: nodes would be launched for it.
func (f *fence) look(c *checker, claims []*karpenter.NodeClaim) {
	var now outbox
	key := cluster.Key{Namespace: embedded.Namespace, Name: "joist-outbox"}
	object, err := c.world.Kube.World("checker").Get(context.Background(), cluster.ConfigMaps, key)
	if err != nil || json.Unmarshal([]byte(object.(*corev1.ConfigMap).Data["outbox.json"]), &now) != nil {
		return
	}
	if now.Seq < f.seq {
		c.violate("the fence never goes back", "from %d to %d", f.seq, now.Seq)
	}
	if now.State == "sent" && now.Seq != f.seq {
		f.knows(c, now, claims)
	}
	if now.State == "done" {
		f.done = now.Claims
	} else if now.Seq != f.seq {
		f.done = nil
	}
	f.seq = now.Seq
}

func (f *fence) knows(c *checker, now outbox, claims []*karpenter.NodeClaim) {
	var batch struct {
		Snapshot struct {
			Nodes []struct {
				Claim string `json:"claim"`
			} `json:"nodes"`
		} `json:"snapshot"`
		Pending []struct {
			Pods []struct {
				UID  string `json:"uid"`
				Node string `json:"node"`
			} `json:"pods"`
		} `json:"pending"`
	}
	if !c.document("batches/"+now.Batch.Digest, &batch) {
		return
	}
	known := map[string]bool{}
	for _, node := range batch.Snapshot.Nodes {
		known[node.Claim] = true
	}
	alive := map[string]bool{}
	for _, claim := range claims {
		alive[claim.Name] = claim.DeletionTimestamp == nil
	}
	for _, name := range f.done {
		if alive[name] && !known[name] {
			c.violate("a batch knows the claims before it", "batch %d was built without %s", now.Seq, name)
		}
	}
	pending := map[string]bool{}
	for _, class := range batch.Pending {
		for _, pod := range class.Pods {
			pending[pod.UID] = pod.Node == ""
		}
	}
	for key, pod := range c.guard.pods {
		if since := boundSince(pod); pending[string(pod.UID)] && !since.IsZero() && c.world.Now().Sub(since) > watchLag {
			c.violate("a batch holds no pod that runs", "batch %d holds %s, which is on %s since %s", now.Seq, key, pod.Spec.NodeName, since.Format("15:04:05"))
		}
	}
}

// watchLag bounds how much older than the API server the view of a new batch may be:
// watches hang for at most 75 s, and a process pauses for at most 100 s.
const watchLag = 5 * time.Minute

// boundSince is when a pod was bound to its node; zero while it is on none.
func boundSince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && pod.Spec.NodeName != "" {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// document reads a document out of the store, in the checker's own way.
func (c *checker) document(key string, into any) bool {
	for range 20 {
		// The store's faults strike readers as well; they pass.
		data, err := c.world.Blobs.Get(context.Background(), key)
		if err != nil {
			continue
		}
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return false
		}
		defer decoder.Close()
		text, err := decoder.DecodeAll(data, nil)
		return err == nil && json.Unmarshal(text, into) == nil
	}
	return false
}
