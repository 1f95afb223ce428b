package planvalidator

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roll is the list of pending pods, each to be called once.
type roll struct {
	pods map[string]*pod
	// called says where each pod went.
	called map[string]string
	// short are the names without a namespace, of pods whose name is unique.
	short map[string]string
}

func (w *world) pending() *roll {
	r := &roll{pods: map[string]*pod{}, called: map[string]string{}, short: map[string]string{}}
	for i := range w.scenario.Pods {
		one := newPod(&w.scenario.Pods[i])
		r.pods[one.key] = one
		if _, twice := r.short[one.Name]; twice {
			r.short[one.Name] = "" // two namespaces have it
			continue
		}
		r.short[one.Name] = one.key
	}
	return r
}

// call marks a pod as gone somewhere, and reports names that are no pod's or
// were called before.
func (r *roll) call(name, where string, out *report) (*pod, bool) {
	full := name
	if !strings.Contains(name, "/") {
		if full = r.short[name]; full == "" {
			full = metav1.NamespaceDefault + "/" + name
		}
	}
	one, known := r.pods[full]
	if !known {
		out.add(Once, name, "%s has a pod that the scenario does not, or not by one name", where)
		return nil, false
	}
	if before, called := r.called[full]; called {
		out.add(Once, full, "it goes to %s and to %s", before, where)
		return nil, false
	}
	r.called[full] = where
	return one, true
}

// take calls pods to a node.
func (r *roll) take(names []string, where string, out *report) []*pod {
	var pods []*pod
	for _, name := range names {
		if one, ok := r.call(name, where, out); ok {
			pods = append(pods, one)
		}
	}
	return pods
}

// leave calls the pods without a place, and reports those that nobody called.
func (r *roll) leave(result *Result, out *report) {
	for _, name := range slices.Sorted(maps.Keys(result.Unscheduled)) {
		r.call(name, "nowhere", out)
		if result.Unscheduled[name] == "" {
			out.add(Once, name, "it has no place and no reason why")
		}
	}
	for _, full := range slices.Sorted(maps.Keys(r.pods)) {
		if _, called := r.called[full]; !called {
			out.add(Once, full, "the plan does not say where it goes")
		}
	}
}
