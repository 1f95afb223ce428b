package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// class is a group of equal pods that are to be placed.
type class struct {
	spec *planning.PodSpec
	need amounts
	// pods wait for a place; they are taken from the front, the oldest first. count is
	// how many there were.
	pods  []planning.PodRef
	count int
	wish  wish
	// first is the wish before anything was let go, for pods that are placed singly.
	first wish
	// reach is where the wish holds now.
	reach *reach
	// set is the class's labels, and own what its wish says of other pods.
	set *labelSet
	own ownTerms
	// closed are the places in which no more pods of the class fit, by the key of
	// the reach.
	closed map[string]bool
	// holding remembers which places could hold one of its pods.
	holding map[*reach]bool
	// flock remembers how many of its pods one node could hold there.
	flock map[*reach]int
	// held counts its pods by the key of the reach that they were given.
	held map[string]int
	// failed is whether pods of it found no place in this round.
	failed bool
	// placed counts its pods by domain.
	placed map[string]int
	// problem is why no node can ever hold it; stuck, what kept the last one out.
	problem string
	stuck   string
	// rank is its place in the order.
	rank  int
	shape string
	// kind is what is known of its pods, if they run.
	kind *podKind
}

// readClasses prepares the pending classes in the order in which they are placed:
// by cpu and memory, the largest first, then by age and UID.
func (w *world) readClasses(batch *planning.Batch) {
	w.classes = make([]*class, len(batch.Pending))
	all := make([]class, len(batch.Pending))
	arena := make([]int64, 0, len(all)*len(w.axis.names))
	for i := range batch.Pending {
		c := &all[i]
		w.at, w.classes[i] = c, c
		c.spec, c.pods = &batch.Pending[i].Spec, batch.Pending[i].Pods
		c.count = len(c.pods)
		w.pods += c.count
		c.need = w.axis.into(&arena, c.spec.Requests)
		w.volumes(c)
		c.shape = w.shapes.of(c.spec)
		if c.problem = absurd(c.spec); c.problem == "" {
			c.wish, c.problem = w.wishOf(c)
		}
	}
	w.rankClasses()
}

// rankClasses puts the classes into the order in which they are placed.
func (w *world) rankClasses() {
	w.at = nil
	slices.SortStableFunc(w.classes, func(x, y *class) int {
		for r := range 2 {
			if x.need[r] != y.need[r] {
				return cmp.Compare(y.need[r], x.need[r])
			}
		}
		return comparePods(x.pods, y.pods)
	})
	for i, c := range w.classes {
		c.rank = i
	}
}

func comparePods(x, y []planning.PodRef) int {
	if len(x) == 0 || len(y) == 0 {
		return cmp.Compare(len(x), len(y))
	}
	return cmp.Or(x[0].Created.Compare(y[0].Created), strings.Compare(x[0].UID, y[0].UID))
}

// wishOf is newWish, made once for classes of one shape that say nothing of other
// pods.
func (w *world) wishOf(c *class) (wish, string) {
	if c.spec.ResourceClaims > 0 && !w.snapshot.Settings.PlanDRARequests {
		return wish{}, "it has dynamic resource claims, which are not planned for: remove spec.resourceClaims, run it on nodes that exist, " +
			"or set IGNORE_DRA_REQUESTS=false to plan it by everything else that it asks for"
	}
	alone := len(c.spec.Spread) == 0 && len(c.spec.Volumes) == 0 && (c.spec.Affinity == nil || c.spec.Affinity.PodAffinity == nil && c.spec.Affinity.PodAntiAffinity == nil)
	if got, ok := w.wishes[c.shape]; ok && alone {
		return got, ""
	}
	made, problem := newWish(c.spec, w.bare || w.snapshot.Settings.PreferencePolicy == "Ignore")
	if w.contrary {
		slices.Reverse(made.anyOf)
	}
	if alone && problem == "" {
		w.wishes[c.shape] = made
	}
	return made, problem
}

// absurd finds amounts that no planner can mean.
func absurd(spec *planning.PodSpec) string {
	var worst corev1.ResourceName
	for name, quantity := range spec.Requests {
		if quantity.Sign() < 0 && (worst == "" || name < worst) {
			worst = name
		}
	}
	if worst == "" {
		return ""
	}
	quantity := spec.Requests[worst]
	return fmt.Sprintf("it requests %s of %s: requests must not be negative", quantity.String(), worst)
}

// volumes counts the pod's claims against the attach limits of their drivers. A
// claim that many pods of the class share is attached once, and is not counted
// at all.
func (w *world) volumes(c *class) {
	for i := range c.spec.Volumes {
		if c.spec.Volumes[i].Claim != "" && len(c.pods) > 1 {
			continue
		}
		if at, ok := w.axis.index[planning.AttachLimitResource(c.spec.Volumes[i].Driver)]; ok {
			c.need[at]++
		}
	}
}

// lookKey is equal for wishes that ask the same of nodes.
type lookKey struct {
	shape            string
	anyOf, preferred int
	relaxed          bool
}

// look finds where the class may go as its wish stands, and what its wish says of
// other pods.
func (w *world) look(c *class) {
	at := lookKey{c.shape, len(c.wish.anyOf), len(c.wish.preferred), c.wish.relaxed}
	if c.reach = w.looks[at]; c.reach == nil {
		c.reach = w.reach(fmt.Sprint(at), c.wish.node(), c.spec.Tolerations, c.wish.relaxed)
		w.looks[at] = c.reach
	}
	if len(c.spec.HostPorts) > 0 {
		c.reach = w.besideDaemons(c)
	}
	w.bind(c)
}

// besideDaemons leaves out columns on which a daemon has the class's host port.
func (w *world) besideDaemons(c *class) *reach {
	key := c.reach.key + "\x00ports"
	if r, ok := w.reaches[key]; ok {
		return r
	}
	out := *c.reach
	out.key, out.narrow, out.holder, out.of = key, nil, nil, nil
	for _, d := range w.daemons {
		if planning.PortsConflict(d.spec.HostPorts, c.spec.HostPorts) {
			out.columns = w.interned(out.columns.Without(d.columns))
		}
	}
	out.some = w.buyable(&out) || out.nodes.Len() > 0
	w.reaches[key] = &out
	return &out
}

// fits reports whether a node that could be bought, or one that exists, could hold
// a pod of the class alone.
func (w *world) fits(c *class, r *reach) bool {
	if r.nodes.Len() > 0 || r.holder != nil && c.need.fits(r.holder.Room) {
		return true
	}
	return w.some(r, func(column *packing.Column) bool {
		if !c.need.fits(column.Room) {
			return false
		}
		r.holder = column
		return true
	})
}
