package planning

import (
	"encoding/json"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// NodesKind is the kind of the documents with parts of the nodes.
const NodesKind = event.NodesKind

// maxNodes is the maximum number of nodes of a document. EKS allows clusters of 100,000 nodes.
const maxNodes = 250_000

// NodePart is a part of the nodes of batches and snapshots. Large clusters store most nodes in parts, because few nodes
// change from one document to the next.
type NodePart struct {
	Nodes []Node `json:"nodes"`
	// shared makes UnmarshalJSON share equal values; nil shares none.
	shared *SharedValues
}

// SharedValues are the pod specs and capacities of decoded nodes by their JSON. A cluster has few different ones, and sharing
// them takes less than half of the memory. They are safe for concurrent use, and must not be modified.
type SharedValues struct {
	mu         sync.Mutex
	specs      map[string]PodSpec
	capacities map[string]corev1.ResourceList
}

// sharedClass and sharedNode decode a PodClass and a Node with shared values. Their fields hide those of Node.
type (
	sharedClass struct {
		Spec json.RawMessage `json:"spec"`
		Pods []PodRef        `json:"pods"`
	}
	sharedNode struct {
		Node
		Allocatable json.RawMessage `json:"allocatable"`
		Capacity    json.RawMessage `json:"capacity"`
		Pods        []sharedClass   `json:"pods"`
		DaemonPods  []sharedClass   `json:"daemonPods"`
	}
)

// UnmarshalJSON decodes the nodes. They share equal pod specs and capacities if the part has SharedValues.
func (p *NodePart) UnmarshalJSON(data []byte) error {
	if p.shared == nil {
		type plain NodePart
		return json.Unmarshal(data, (*plain)(p))
	}
	var part struct {
		Nodes []sharedNode `json:"nodes"`
	}
	if err := json.Unmarshal(data, &part); err != nil {
		return err
	}
	v := p.shared
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.specs == nil {
		v.specs, v.capacities = map[string]PodSpec{}, map[string]corev1.ResourceList{}
	}
	p.Nodes = make([]Node, len(part.Nodes))
	for i := range part.Nodes {
		from, to := &part.Nodes[i], &p.Nodes[i]
		*to = from.Node
		err := errors.Join(findShared(v.capacities, from.Allocatable, &to.Allocatable), findShared(v.capacities, from.Capacity, &to.Capacity),
			v.shareClasses(from.Pods, &to.Pods), v.shareClasses(from.DaemonPods, &to.DaemonPods))
		if err != nil {
			return err
		}
	}
	return nil
}

// shareClasses decodes the specs of the classes.
func (v *SharedValues) shareClasses(from []sharedClass, to *[]PodClass) error {
	for i := range from {
		class := PodClass{Pods: from[i].Pods}
		if err := findShared(v.specs, from[i].Spec, &class.Spec); err != nil {
			return err
		}
		*to = append(*to, class)
	}
	return nil
}

// findShared decodes a value unless it is known.
func findShared[T any](known map[string]T, text json.RawMessage, to *T) error {
	if len(text) == 0 {
		return nil
	}
	if value, ok := known[string(text)]; ok {
		*to = value
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return err
	}
	known[string(text)] = *to
	return nil
}

// NodeParts says where the nodes of a stored document are. It is empty if the document has all of them.
type NodeParts struct {
	// Refs are the parts.
	Refs []event.Ref `json:"refs,omitempty"`
	// Runs are the nodes in order.
	Runs []NodeRun `json:"runs,omitempty"`
}

// NodeRun is a run of nodes of one part, as [part, first, count]: from index first on, count nodes of Refs[part-1], or of the
// nodes in the document itself if part is 0.
type NodeRun [3]int

// PartRefs returns the references of the parts that the snapshot needs.
func (s *Snapshot) PartRefs() ([]event.Ref, error) {
	for _, ref := range s.NodeParts.Refs {
		if err := ref.ValidateKind(NodesKind); err != nil {
			return nil, err
		}
	}
	return s.NodeParts.Refs, nil
}

// NewPart returns a NodePart to decode into. shared is a *SharedValues or nil.
func (s *Snapshot) NewPart(shared any) any {
	values, _ := shared.(*SharedValues)
	return &NodePart{shared: values}
}

// NewShared returns empty SharedValues.
func (s *Snapshot) NewShared() any { return &SharedValues{} }

// Join completes the nodes with the parts, which are *NodePart in the order of PartRefs. The snapshot shares memory with the
// parts. A run that is not in its part is Poison.
func (s *Snapshot) Join(parts []any) error {
	if len(s.NodeParts.Runs) == 0 && len(parts) == 0 {
		return nil
	}
	lists := [][]Node{s.Nodes}
	for _, part := range parts {
		lists = append(lists, part.(*NodePart).Nodes)
	}
	poison := func(format string, args ...any) error {
		return fault.F("joining the nodes of a document", fault.Poison, format, args...)
	}
	total := 0
	for _, run := range s.NodeParts.Runs {
		part, first, count := run[0], run[1], run[2]
		if part < 0 || part >= len(lists) || first < 0 || count < 1 || first > len(lists[part]) || count > len(lists[part])-first {
			return poison("it has %d parts, and a run of %d nodes from index %d of part %d", len(parts), count, first, part)
		}
		if total += count; total > maxNodes {
			return poison("it has more than %d nodes", maxNodes)
		}
	}
	nodes := make([]Node, 0, total)
	for _, run := range s.NodeParts.Runs {
		nodes = append(nodes, lists[run[0]][run[1]:run[1]+run[2]]...)
	}
	s.Nodes, s.NodeParts = nodes, NodeParts{}
	return nil
}

// PartRefs returns the references of the parts that the snapshot of the batch needs.
func (b *Batch) PartRefs() ([]event.Ref, error) { return b.Snapshot.PartRefs() }

// NewPart returns a NodePart to decode into.
func (b *Batch) NewPart(shared any) any { return b.Snapshot.NewPart(shared) }

// NewShared returns empty SharedValues.
func (b *Batch) NewShared() any { return b.Snapshot.NewShared() }

// Join completes the nodes of the snapshot with the parts.
func (b *Batch) Join(parts []any) error { return b.Snapshot.Join(parts) }
