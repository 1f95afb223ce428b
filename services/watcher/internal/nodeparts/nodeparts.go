// Package nodeparts stores the nodes of large clusters in parts, so that a document of the watcher has only the nodes that
// changed since the parts were stored.
//
// A cluster of up to PartSizes.Inline nodes has no parts. In a larger one, nodes that are equal in a stored part are referred to
// there, and the others are in the document. When these are too many, they become new parts. A part of which less than half is
// still current is no longer used, and its current nodes are stored again: at most as many as have changed.
package nodeparts

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// PartSizes are the sizes of documents and parts in nodes.
type PartSizes struct {
	// Inline is the maximum number of nodes in a document, and Part in a part.
	Inline, Part int
	// Parallel is how many parts are stored at the same time; zero means one.
	Parallel int
}

// DefaultSizes keeps a document below a megabyte and a part at about 100 KB.
var DefaultSizes = PartSizes{Inline: 256, Part: 128, Parallel: blob.Parallel}

// StoredParts are the parts that the documents of one kind refer to. It is not safe for concurrent use.
type StoredParts struct {
	sizes PartSizes
	// putAgain is the age at which a part is stored again: it may be missing by then, and it expires with the last document that
	// refers to it.
	putAgain time.Duration
	// places are the places of the nodes in the parts.
	places map[nodeKey]place
}

// part is a stored part with the nodes that it has.
type part struct {
	ref     event.Ref
	nodes   []planning.Node
	written time.Time
}

// nodeKey identifies a node from one document to the next.
type nodeKey struct{ name, claim string }

// place is the place of a node in a part; zero for a node in the document.
type place struct {
	part  *part
	index int
}

// New returns parts with sizes, which are stored again when they have that age.
func New(sizes PartSizes, putAgain time.Duration) *StoredParts {
	return &StoredParts{sizes: sizes, putAgain: putAgain}
}

// Forget makes the next document store all parts again. It is called when a document was not answered, because a
// part may be missing.
func (p *StoredParts) Forget() { p.places = nil }

// ShrinkDocuments makes later documents have no nodes, because the last one was too large to store. It returns false if they
// have none already.
func (p *StoredParts) ShrinkDocuments() bool {
	had := p.sizes.Inline > 0
	p.sizes.Inline = 0
	return had
}

// Store stores the parts that the nodes need and are not stored yet. It returns the nodes for the document and where all of
// them are. After an error, the next call stores the parts again. The nodes are kept: their maps and slices must not change.
func (p *StoredParts) Store(ctx context.Context, store blob.Store, now time.Time, nodes []planning.Node) ([]planning.Node, planning.NodeParts, error) {
	if len(nodes) <= p.sizes.Inline {
		p.places = nil
		return nodes, planning.NodeParts{}, nil
	}
	places := p.findPlaces(nodes, now)
	var inline []int
	for i := range places {
		if places[i].part == nil {
			inline = append(inline, i)
		}
	}
	if len(inline) > p.sizes.Inline {
		if err := p.addParts(ctx, store, now, nodes, inline, places); err != nil {
			return nil, planning.NodeParts{}, err
		}
	}
	document, where := describe(nodes, places)
	return document, where, nil
}

// findPlaces returns where each node is stored already. Nodes of a part of which less than half is current have no place.
func (p *StoredParts) findPlaces(nodes []planning.Node, now time.Time) []place {
	places, current := make([]place, len(nodes)), map[*part]int{}
	for i := range nodes {
		at, ok := p.places[keyOf(&nodes[i])]
		if ok && now.Sub(at.part.written) < p.putAgain && haveSameFields(&at.part.nodes[at.index], &nodes[i]) {
			places[i] = at
			current[at.part]++
		}
	}
	for i, at := range places {
		if at.part != nil && 2*current[at.part] < len(at.part.nodes) {
			places[i] = place{}
		}
	}
	return places
}

// addParts stores the nodes with these indices in new parts, and sets their places.
func (p *StoredParts) addParts(ctx context.Context, store blob.Store, now time.Time, nodes []planning.Node, inline []int, places []place) error {
	var added []*part
	var documents []planning.NodePart
	for chunk := range slices.Chunk(inline, p.sizes.Part) {
		next := &part{written: now}
		for index, i := range chunk {
			next.nodes = append(next.nodes, nodes[i])
			places[i] = place{next, index}
		}
		added, documents = append(added, next), append(documents, planning.NodePart{Nodes: next.nodes})
	}
	refs, err := blob.PutAll(ctx, store, now, planning.NodesKind, documents, p.sizes.Parallel)
	if errors.Is(err, blob.ErrTooLarge) && p.sizes.Part > 1 {
		p.sizes.Part /= 2
		return p.addParts(ctx, store, now, nodes, inline, places)
	}
	if err != nil {
		return err
	}
	for i := range added {
		added[i].ref = refs[i]
	}
	p.places = make(map[nodeKey]place, len(nodes))
	for i, at := range places {
		p.places[keyOf(&nodes[i])] = at
	}
	return nil
}

// describe returns the nodes without a place, and where all nodes are.
func describe(nodes []planning.Node, places []place) ([]planning.Node, planning.NodeParts) {
	inline, where, numbers := []planning.Node{}, planning.NodeParts{}, map[*part]int{nil: 0}
	for i, at := range places {
		number, known := numbers[at.part]
		if !known {
			where.Refs = append(where.Refs, at.part.ref)
			number = len(where.Refs)
			numbers[at.part] = number
		}
		if at.part == nil {
			at.index = len(inline)
			inline = append(inline, nodes[i])
		}
		if last := len(where.Runs) - 1; last >= 0 && where.Runs[last][0] == number && where.Runs[last][1]+where.Runs[last][2] == at.index {
			where.Runs[last][2]++
		} else {
			where.Runs = append(where.Runs, planning.NodeRun{number, at.index, 1})
		}
	}
	return inline, where
}

func keyOf(node *planning.Node) nodeKey { return nodeKey{node.Name, node.Claim} }

// haveSameFields reports whether two nodes are equal. It compares maps, slices and pointers first by their addresses, because
// the nodes that did not change share them.
func haveSameFields(a, b *planning.Node) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		u, v := x.Field(i), y.Field(i)
		switch u.Kind() {
		case reflect.Map, reflect.Pointer:
			if u.Pointer() == v.Pointer() {
				continue
			}
		case reflect.Slice:
			if u.Pointer() == v.Pointer() && u.Len() == v.Len() {
				continue
			}
		default:
			if u.Equal(v) {
				continue
			}
		}
		if !reflect.DeepEqual(u.Interface(), v.Interface()) {
			return false
		}
	}
	return true
}
