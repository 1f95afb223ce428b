package planning

import (
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

// NewPart returns a NodePart to decode into.
func (s *Snapshot) NewPart() any { return &NodePart{} }

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
func (b *Batch) NewPart() any { return b.Snapshot.NewPart() }

// Join completes the nodes of the snapshot with the parts.
func (b *Batch) Join(parts []any) error { return b.Snapshot.Join(parts) }
