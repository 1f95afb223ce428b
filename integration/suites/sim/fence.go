package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// fenceChecker checks the outbox of the watcher.
type fenceChecker struct {
	lastSequence uint64
	doneClaims   []string
}

// outboxState is the part of the outbox that the checkers read.
type outboxState struct {
	Seq    uint64   `json:"seq"`
	State  string   `json:"state"`
	Claims []string `json:"claims"`
	Plan   string   `json:"plan"`
	Batch  struct {
		Digest string `json:"digest"`
	} `json:"batch"`
}

// checkOutbox checks that a batch contains every remaining NodeClaim of the plan before it, or two plans would use
// the same free capacity, and that it contains no running pod.
func (f *fenceChecker) checkOutbox(c *checker, claims []*karpenter.NodeClaim) {
	var now outboxState
	key := cluster.Key{Namespace: embedded.Namespace, Name: "joist-outbox"}
	object, err := c.world.Kube.AsKubernetes("checker").Get(context.Background(), cluster.ConfigMaps, key)
	if err != nil || json.Unmarshal([]byte(object.(*corev1.ConfigMap).Data["outbox.json"]), &now) != nil {
		return
	}
	if now.Seq < f.lastSequence {
		c.reportViolation("the outbox sequence never decreases", "from %d to %d", f.lastSequence, now.Seq)
	}
	if now.State == "sent" && now.Seq != f.lastSequence {
		f.checkBatch(c, now, claims)
	}
	if now.State == "done" {
		f.doneClaims = now.Claims
	} else if now.Seq != f.lastSequence {
		f.doneClaims = nil
	}
	f.lastSequence = now.Seq
}

func (f *fenceChecker) checkBatch(c *checker, now outboxState, claims []*karpenter.NodeClaim) {
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
	if !c.readBatch(now.Batch.Digest, &batch) {
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
	for _, name := range f.doneClaims {
		if alive[name] && !known[name] {
			c.reportViolation("a batch contains the NodeClaims of the plan before", "batch %d was built without %s", now.Seq, name)
		}
	}
	pending := map[string]bool{}
	for _, class := range batch.Pending {
		for _, pod := range class.Pods {
			pending[pod.UID] = pod.Node == ""
		}
	}
	for key, pod := range c.evictions.pods {
		if since := boundSince(pod); pending[string(pod.UID)] && !since.IsZero() && c.world.Now().Sub(since) > watchLag {
			c.reportViolation("a batch contains no running pod", "batch %d contains %s, which runs on %s since %s", now.Seq, key, pod.Spec.NodeName, since.Format("15:04:05"))
		}
	}
}

// watchLag bounds the age of the data in a new batch: watches stop for up to 75 s, and a process pauses for up to
// 100 s.
const watchLag = 5 * time.Minute

// boundSince returns when a pod was bound to its node; zero if it is not bound.
func boundSince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && pod.Spec.NodeName != "" {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// readBatch reads a batch with the parts of its nodes, without the code under test.
func (c *checker) readBatch(digest string, into any) bool {
	var batch, snapshot map[string]json.RawMessage
	if !c.readDocument("batches/"+digest, &batch) || json.Unmarshal(batch["snapshot"], &snapshot) != nil {
		return false
	}
	if snapshot["nodeParts"] != nil {
		c.occurrences["batch with parts"]++
		nodes, err := c.joinNodes(snapshot["nodes"], snapshot["nodeParts"])
		if err != nil {
			return false
		}
		snapshot["nodes"] = nodes
		if batch["snapshot"], err = json.Marshal(snapshot); err != nil {
			return false
		}
	}
	text, err := json.Marshal(batch)
	return err == nil && json.Unmarshal(text, into) == nil
}

// joinNodes returns the list of the nodes inside a document and in its parts.
func (c *checker) joinNodes(inside, parts json.RawMessage) (json.RawMessage, error) {
	var where struct {
		Refs []struct {
			Digest string `json:"digest"`
		} `json:"refs"`
		Runs [][3]int `json:"runs"`
	}
	lists := make([][]json.RawMessage, 1)
	if err := errors.Join(json.Unmarshal(inside, &lists[0]), json.Unmarshal(parts, &where)); err != nil {
		return nil, err
	}
	for _, ref := range where.Refs {
		var part struct {
			Nodes []json.RawMessage `json:"nodes"`
		}
		key := "nodes/" + ref.Digest
		if !slices.Contains(c.world.Blobs.ListKeys(), key) {
			c.reportViolation("a batch refers to stored parts", "%s is missing", key)
		}
		if !c.readDocument(key, &part) {
			return nil, fmt.Errorf("reading %s", key)
		}
		lists = append(lists, part.Nodes)
	}
	nodes := []json.RawMessage{}
	for _, run := range where.Runs {
		nodes = append(nodes, lists[run[0]][run[1]:run[1]+run[2]]...)
	}
	return json.Marshal(nodes)
}

// newDecoder returns the decoder of all documents, which several seeds use at the same time.
var newDecoder = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0)) })

// readDocument reads a document from the blob store without the code under test.
func (c *checker) readDocument(key string, into any) bool {
	for range 20 {
		// Faults of the store also affect this call; a retry succeeds.
		data, err := c.world.Blobs.Get(context.Background(), key)
		if err != nil {
			continue
		}
		decoder, err := newDecoder()
		if err != nil {
			return false
		}
		text, err := decoder.DecodeAll(data, nil)
		return err == nil && json.Unmarshal(text, into) == nil
	}
	return false
}
