// Package planner answers what Karpenter's scheduler is asked with Joist's collector and planner, so that Karpenter's
// own specs run against Joist. It knows Karpenter's objects and instance types, and nothing of its scheduler, which
// imports it.
package planner

import (
	"cmp"
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
	// WindowsPools are the pools whose nodes run Windows. The nodes of others run Linux.
	WindowsPools map[string]bool
	// AnySystem is set if neither pods nor pools depend on the operating system. All types then count as types of Linux.
	AnySystem bool
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

// simulates reports whether the question is about removing nodes: some pods to place run on nodes that take no pods and
// whose removal has not begun.
func (q Question) simulates() bool {
	return slices.ContainsFunc(q.Pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && !q.Nodes[p.Spec.NodeName] && !q.LeavingNodes[p.Spec.NodeName]
	})
}

// removes reports whether the removal of the node is simulated.
func (q Question) removes(node string) bool {
	return node != "" && !q.Nodes[node] && !q.LeavingNodes[node] && q.simulates()
}

// Answer is where Joist places the pods. Pods are identified by namespace/name.
type Answer struct {
	NewNodes []NodeAnswer
	// Nominations are the names of existing nodes, or of NodeClaims without a node, by pod.
	Nominations map[string]string
	// Unplaced are the reasons by pod.
	Unplaced map[string]string
	// Allocations are the devices for the ResourceClaims of the pods.
	Allocations []planning.ClaimAllocation
}

// NodeAnswer is a node to launch.
type NodeAnswer struct {
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
	removed := findRemoved(q, snapshot.Nodes)
	switch {
	case len(removed) > 0 && q.IsConsolidation:
		return newAnswer(q, batch, solver.NewSimulation(snapshot, types).SimulateConsolidation(removed...)), nil
	case len(removed) > 0:
		return newAnswer(q, batch, solver.NewSimulation(snapshot, types).SimulateRemoval(removed...)), nil
	}
	return newAnswer(q, batch, solver.SolveWithTypes(batch, types)), nil
}

// markNodes marks the nodes that are being removed, and gives all nodes the label of the node class.
func markNodes(q Question, nodes []planning.Node) {
	for i := range nodes {
		node := &nodes[i]
		node.Labels = maps.Clone(node.Labels)
		if node.Claim != "" {
			node.Labels[karpenter.LabelEC2NodeClass] = q.classOf(node.NodePool)
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

// newAnswer returns the places of the asked pods. Others, such as pods that a PodDisruptionBudget keeps, are left out.
func newAnswer(q Question, batch planning.Batch, result planning.Result) Answer {
	out := Answer{Nominations: map[string]string{}, Unplaced: map[string]string{}, Allocations: result.Allocations}
	simulates := q.simulates()
	for _, pod := range q.Pods {
		if !simulates || q.removes(pod.Spec.NodeName) { // A simulation places the others too, and does not report it.
			out.Unplaced[nameOf(pod)] = "Joist does not plan this pod"
		}
	}
	for _, node := range result.Nodes {
		one := NodeAnswer{PlannedNode: node, Types: map[string]bool{}}
		if len(node.Offerings) > 0 && node.Offerings[0].CapacityType == karpenter.CapacityTypeReserved {
			one.Reservations, _ = node.Requirements[karpenter.LabelCapacityReservationID].ListValues()
		}
		for _, o := range node.Offerings {
			one.Types[o.InstanceType] = true
		}
		for _, p := range node.Pods {
			if out.take(p.Namespace, p.Pod.Name) {
				one.Pods = append(one.Pods, p.Namespace+"/"+p.Pod.Name)
			}
		}
		if len(one.Pods) > 0 {
			out.NewNodes = append(out.NewNodes, one)
		}
	}
	for _, n := range result.Nominations {
		if out.take(n.Namespace, n.Pod.Name) {
			out.Nominations[n.Namespace+"/"+n.Pod.Name] = cmp.Or(n.Node, n.Claim)
		}
	}
	for _, ignored := range batch.Ignored {
		out.explain(ignored.Namespace, ignored.Pods, ignored.Reason)
	}
	for _, u := range result.Unplaced {
		out.explain(u.Namespace, u.Pods, describeRejections(u.Rejections))
	}
	return out
}

// take removes a pod from Unplaced, and reports whether it was there.
func (a Answer) take(namespace, name string) bool {
	_, asked := a.Unplaced[namespace+"/"+name]
	delete(a.Unplaced, namespace+"/"+name)
	return asked
}

// explain sets the reason of unplaced pods.
func (a Answer) explain(namespace string, pods []planning.PodRef, reason string) {
	for _, p := range pods {
		if a.take(namespace, p.Name) {
			a.Unplaced[namespace+"/"+p.Name] = reason
		}
	}
}

func describeRejections(rejections []planning.Rejection) string {
	var out []string
	for _, r := range rejections {
		out = append(out, fmt.Sprintf("%s: %s: %s", r.NodePool, r.Rule, r.Detail))
	}
	return strings.Join(out, "; ")
}
