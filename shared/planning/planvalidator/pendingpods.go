package planvalidator

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pendingPods are the pending pods, each of which is placed once.
type pendingPods struct {
	pods map[string]*pod
	// called is where each pod was placed.
	called map[string]string
	// short maps pod names without namespace to unique pods.
	short map[string]string
}

func (w *finalCluster) newPendingPods() *pendingPods {
	r := &pendingPods{pods: map[string]*pod{}, called: map[string]string{}, short: map[string]string{}}
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

// claimPod marks a pod as placed, and reports unknown names and pods that are placed twice.
func (r *pendingPods) claimPod(name, where string, out *report) (*pod, bool) {
	full := name
	if !strings.Contains(name, "/") {
		if full = r.short[name]; full == "" {
			full = metav1.NamespaceDefault + "/" + name
		}
	}
	one, known := r.pods[full]
	if !known {
		out.add(Once, name, "%s has a pod that is unknown or ambiguous", where)
		return nil, false
	}
	if before, called := r.called[full]; called {
		out.add(Once, full, "the pod is placed on %s and on %s", before, where)
		return nil, false
	}
	r.called[full] = where
	return one, true
}

// claimPods marks the pods of one node as placed.
func (r *pendingPods) claimPods(names []string, where string, out *report) []*pod {
	var pods []*pod
	for _, name := range names {
		if one, ok := r.claimPod(name, where, out); ok {
			pods = append(pods, one)
		}
	}
	return pods
}

// checkUnplaced marks the unscheduled pods and reports pods that the plan does not name.
func (r *pendingPods) checkUnplaced(result *Result, out *report) {
	for _, name := range slices.Sorted(maps.Keys(result.Unscheduled)) {
		r.claimPod(name, "nowhere", out)
		if result.Unscheduled[name] == "" {
			out.add(Once, name, "the pod is unscheduled without a reason")
		}
	}
	for _, full := range slices.Sorted(maps.Keys(r.pods)) {
		if _, called := r.called[full]; !called {
			out.add(Once, full, "the plan does not mention the pod")
		}
	}
}
