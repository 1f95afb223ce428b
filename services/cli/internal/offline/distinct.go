package offline

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// distinct keeps, of objects that are in the files more than once, the last one,
// as applying the files one after the other would.
func (a *Answer) distinct(objects []cluster.Object) []cluster.Object {
	type identity struct {
		kind schema.GroupVersionKind
		key  cluster.Key
	}
	var out []cluster.Object
	index := map[identity]int{}
	for _, object := range objects {
		id := identity{object.GetObjectKind().GroupVersionKind(), cluster.KeyOf(object)}
		i, known := index[id]
		switch {
		case object.GetName() == "": // It gets a name of its own.
			out = append(out, object)
		case known:
			a.assume("%s %s is in the files more than once: the last one counts", id.kind.Kind, id.key)
			out[i] = object
		default:
			index[id] = len(out)
			out = append(out, object)
		}
	}
	return out
}
