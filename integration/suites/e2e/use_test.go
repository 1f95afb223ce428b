package e2e

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// unused are permissions that this test does not use, with the reason to grant them.
// Watched resources may be listed, too: an API server without streaming lists needs it,
// and this one streams
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists).
var unused = map[string]string{
	"watcher create events":                                      "a pod that no batch can contain gets an Event; here every pod can be placed",
	"watcher get karpenter.sh/nodeclaims":                        "a claim of the last plan that is not in the cache is read; here the cache has all in time",
	"watcher create coordination.k8s.io/leases in kube-system":   "the service that starts first creates Karpenter's Lease",
	"lifecycle create coordination.k8s.io/leases in kube-system": "the service that starts first creates Karpenter's Lease",
	"lifecycle delete pods":                                      "pods are deleted at the deadline of a drain; here they end in time (TestDrains of integration/suites/lifecycle)",
	"lifecycle get karpenter.sh/nodepools":                       "the nodes of a static pool are counted before one is removed (gate StaticCapacity)",
	"lifecycle get autoscaling.x-k8s.io/capacitybuffers":         "a plan has a result for each buffer; here the buffer has no replicas",
	"lifecycle get apps/deployments":                             "a CapacityBuffer may refer to one; here it refers to a PodTemplate",
	"lifecycle get apps/statefulsets":                            "a CapacityBuffer may refer to one; here it refers to a PodTemplate",
	"lifecycle get apps/replicasets":                             "a CapacityBuffer may refer to one; here it refers to a PodTemplate",
	"lifecycle create configmaps in joist":                       "the service that starts first creates the outbox; unavailable offerings are recorded when there are any",
	"lifecycle update configmaps joist-unavailable in joist":     "the second unavailable offering is added to the ConfigMap; here there is none or one",
}

// checkUsedPermissions compares the chart's permissions with all calls to the API server: no call was
// denied, and each permission was used or has a reason.
func (w *e2eCluster) checkUsedPermissions() {
	w.Helper()
	calls, err := w.Plane.Calls()
	w.RequireNoError(err)
	n, reported := 0, map[string]bool{}
	for _, service := range []string{"watcher", "lifecycle"} {
		account := testbed.ServiceAccount(service)
		asked := 0
		for call, times := range calls {
			if call.User != account {
				continue
			}
			asked += times
			if call.Denied {
				w.Errorf("%s was denied %s %s/%s %s in %q", service, call.Verb, call.Group, call.Resource, call.Name, call.Namespace)
			}
		}
		if asked == 0 {
			w.Errorf("%s made no API calls: the audit log is incomplete", service)
		}
		for _, r := range w.granted(service) {
			n++
			used := r.used(account, calls) || r.verb == "list" && right{"watch", r.group, r.resource, r.namespace, r.name}.used(account, calls)
			name := service + " " + r.String()
			reported[name] = true
			if !used && unused[name] == "" {
				w.Errorf("%s may %s, but never does: remove the permission, or add to `unused` the reason why it is needed", service, r)
			}
		}
	}
	for name := range unused {
		if !reported[name] {
			w.Errorf("`unused` has a reason for a permission that no service has: %s", name)
		}
	}
	w.Logf("compared %d permissions of two services with %d kinds of calls", n, len(calls))
}

// right is one verb on one resource, optionally of one name.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	text := r.verb + " " + strings.TrimPrefix(r.group+"/"+r.resource, "/")
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		text += " in " + r.namespace
	}
	return text
}

func (r right) used(account string, calls map[controlplane.Call]int) bool {
	for call := range maps.Keys(calls) {
		if call.User == account && call.Verb == r.verb && call.Group == r.group && call.Resource == r.resource &&
			(r.namespace == "" || call.Namespace == r.namespace) && (r.name == "" || call.Name == r.name) {
			return true
		}
	}
	return false
}

// granted returns the permissions of a service's account in the API server.
func (w *e2eCluster) granted(service string) []right {
	w.Helper()
	name := "joist-" + service
	cluster, err := w.Kube.RbacV1().ClusterRoles().Get(w.Context(), name, metav1.GetOptions{})
	w.RequireNoError(err)
	own, err := w.Kube.RbacV1().Roles(testbed.Namespace).Get(w.Context(), name, metav1.GetOptions{})
	w.RequireNoError(err)
	lease, err := w.Kube.RbacV1().Roles("kube-system").Get(w.Context(), "joist-karpenter-lease", metav1.GetOptions{})
	w.RequireNoError(err)
	all := slices.Concat(rights("", cluster.Rules), rights(own.Namespace, own.Rules), rights(lease.Namespace, lease.Rules))
	slices.SortFunc(all, func(a, b right) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

func rights(namespace string, rules []rbacv1.PolicyRule) []right {
	var all []right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, right{verb, group, resource, namespace, name})
					}
				}
			}
		}
	}
	return all
}
