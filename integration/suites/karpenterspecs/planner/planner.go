// Package planner answers what Karpenter's scheduler is asked with Joist's collector and planner, so that Karpenter's
// own specs run against Joist. It knows Karpenter's objects and instance types, and nothing of its scheduler, which
// imports it.
package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Question is one call of Karpenter's scheduler.
type Question struct {
	// Client reads the cluster from the API server.
	Client client.Client
	// NodePools are the names of the pools that may launch nodes.
	NodePools []string
	// Types are the instance types of each pool, by its name.
	Types map[string][]*cloudprovider.InstanceType
	// Nodes are the names of the nodes, and of NodeClaims without a node, that may take pods. All others are being
	// removed.
	Nodes map[string]bool
	// LeavingNodes are the nodes whose removal has begun. The removal of others that are not in Nodes is simulated.
	LeavingNodes map[string]bool
	// IsConsolidation closes the nodes whose consolidateAfter has not passed to the pods of removed nodes.
	IsConsolidation bool
	// Pods are the pods to place.
	Pods []*corev1.Pod
	// Credit is the number of instances that a reservation will have in addition, by its id.
	Credit map[string]int
	// DefaultConstraints are added to pods that have no topology spread constraints.
	DefaultConstraints []corev1.TopologySpreadConstraint
	Settings           planning.Settings
	Now                time.Time
}

// removes reports whether the node is removed only in a simulation of consolidation.
func (q Question) removes(node string) bool {
	return q.IsConsolidation && node != "" && !q.Nodes[node] && !q.LeavingNodes[node]
}

// Answer is where Joist places the pods. Pods are identified by namespace/name.
type Answer struct {
	NewNodes []NewNode
	// Nominations are the names of existing nodes, or of NodeClaims without a node, by pod.
	Nominations map[string]string
	// Unplaced are the reasons by pod.
	Unplaced map[string]string
	// Allocations are the devices for the ResourceClaims of the pods.
	Allocations []planning.ClaimAllocation
}

// NewNode is a node to launch.
type NewNode struct {
	planning.PlannedNode
	// Pods are the pods, as namespace/name.
	Pods []string
	// Types are the names of the instance types of the offerings.
	Types map[string]bool
	// Reservations are the ids of the capacity reservations that the launch may use.
	Reservations []string
}

// Plan answers the question.
func Plan(ctx context.Context, q Question) (Answer, error) {
	feed, err := readCluster(ctx, q)
	if err != nil {
		return Answer{}, err
	}
	batch, snapshot := watcher.CollectDocuments(watcher.Observation{
		Feed: feed, Cluster: event.Cluster{Name: "specs", UID: "specs"}, Settings: q.Settings, DefaultConstraints: q.DefaultConstraints,
		Outbox: "specs", Seq: 1, Now: q.Now,
	})
	asked := map[string]bool{}
	for _, pod := range q.Pods {
		asked[nameOf(pod)] = true
	}
	batch.Pending, snapshot.PendingPods = keepAsked(batch.Pending, asked), keepAsked(snapshot.PendingPods, asked)
	batch.Unplanned = nil // Karpenter launches NodeClaims of users elsewhere.
	types := convertTypes(q)
	for id, credit := range q.Credit {
		types = types.CreditReservation(id, credit)
	}
	markNodes(q, batch.Snapshot.Nodes)
	markNodes(q, snapshot.Nodes)
	if removed := findRemoved(q, snapshot.Nodes); len(removed) > 0 {
		return newAnswer(q, batch, solver.NewSimulation(snapshot, types).SimulateConsolidation(removed...)), nil
	}
	return newAnswer(q, batch, solver.SolveWithTypes(batch, types)), nil
}

// markNodes marks the nodes that are being removed, and gives all nodes the label of the node class.
func markNodes(q Question, nodes []planning.Node) {
	for i := range nodes {
		node := &nodes[i]
		node.Labels = maps.Clone(node.Labels)
		if node.Claim != "" {
			node.Labels[karpenter.LabelEC2NodeClass] = nodeClass
		}
		if !q.Nodes[node.Name] && !q.removes(node.Name) {
			node.MarkedForDeletion = true
		}
	}
}

// findRemoved returns the indices of the nodes whose removal is simulated.
func findRemoved(q Question, nodes []planning.Node) (out []int) {
	for i := range nodes {
		if q.removes(nodes[i].Name) {
			out = append(out, i)
		}
	}
	return out
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// keepAsked returns the classes with only the pods that are asked for.
func keepAsked(classes []planning.PodClass, asked map[string]bool) []planning.PodClass {
	var out []planning.PodClass
	for _, class := range classes {
		class.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(p planning.PodRef) bool { return !asked[class.Spec.Namespace+"/"+p.Name] })
		if len(class.Pods) > 0 {
			out = append(out, class)
		}
	}
	return out
}

func newAnswer(q Question, batch planning.Batch, result planning.Result) Answer {
	out := Answer{Nominations: map[string]string{}, Unplaced: map[string]string{}, Allocations: result.Allocations}
	left := map[string]bool{}
	for _, pod := range q.Pods {
		left[nameOf(pod)] = true
	}
	for _, node := range result.Nodes {
		one := NewNode{PlannedNode: node, Types: map[string]bool{}}
		for _, p := range node.Pods {
			name := p.Namespace + "/" + p.Pod.Name
			one.Pods = append(one.Pods, name)
			delete(left, name)
		}
		reservations := map[string]bool{}
		for _, o := range node.Offerings {
			one.Types[o.InstanceType] = true
			if o.CapacityType == "reserved" {
				for _, id := range findReservations(q, node.NodePool, o) {
					reservations[id] = true
				}
			}
		}
		one.Reservations = slices.Sorted(maps.Keys(reservations))
		out.NewNodes = append(out.NewNodes, one)
	}
	for _, n := range result.Nominations {
		name := n.Namespace + "/" + n.Pod.Name
		out.Nominations[name] = n.Node
		if n.Node == "" {
			out.Nominations[name] = n.Claim
		}
		delete(left, name)
	}
	for _, u := range result.Unplaced {
		for _, p := range u.Pods {
			name := u.Namespace + "/" + p.Name
			out.Unplaced[name] = describeRejections(u.Rejections)
			delete(left, name)
		}
	}
	for _, ignored := range batch.Ignored {
		for _, p := range ignored.Pods {
			name := ignored.Namespace + "/" + p.Name
			if left[name] {
				out.Unplaced[name] = ignored.Reason
				delete(left, name)
			}
		}
	}
	for name := range left {
		out.Unplaced[name] = "the collector does not plan this pod"
	}
	return out
}

func describeRejections(rejections []planning.Rejection) string {
	var out []string
	for _, r := range rejections {
		out = append(out, fmt.Sprintf("%s: %s: %s", r.NodePool, r.Rule, r.Detail))
	}
	return strings.Join(out, "; ")
}
