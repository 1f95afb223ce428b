package e2e

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

// checkRights checks with the API server what the services may not do. The rest of the
// test shows that they have the permissions that they need.
func (w *e2eCluster) checkRights() {
	w.Helper()
	for _, c := range []struct {
		service, verb, group, resource, namespace, name string
	}{
		{"watcher", "get", "", "pods", "default", "inflate"},
		{"watcher", "create", "karpenter.sh", "nodeclaims", "", ""},
		{"watcher", "delete", "", "pods", "default", ""},
		{"watcher", "update", "", "nodes", "", ""},
		{"watcher", "update", "karpenter.sh", "nodeclaims", "", ""},
		{"watcher", "list", "", "secrets", testbed.Namespace, ""},
		{"watcher", "list", "", "configmaps", "kube-system", ""},
		{"watcher", "update", "", "configmaps", testbed.Namespace, "joist-unavailable"},
		{"watcher", "update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"},
		{"lifecycle", "list", "", "secrets", testbed.Namespace, ""},
		{"lifecycle", "get", "", "pods", "default", "inflate"},
		{"lifecycle", "create", "", "pods", "default", ""},
		{"lifecycle", "update", "", "pods", "default", ""},
		{"lifecycle", "update", "", "persistentvolumeclaims", "default", ""},
		{"lifecycle", "delete", "", "persistentvolumeclaims", "default", ""},
		{"lifecycle", "delete", "policy", "poddisruptionbudgets", "default", ""},
		{"lifecycle", "delete", "storage.k8s.io", "volumeattachments", "", ""},
		{"lifecycle", "create", "", "nodes", "", ""},
		{"lifecycle", "create", "karpenter.sh", "nodepools", "", ""},
		{"lifecycle", "delete", "karpenter.sh", "nodepools", "", ""},
		{"lifecycle", "delete", "karpenter.k8s.aws", "ec2nodeclasses", "", ""},
		{"lifecycle", "update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"},
	} {
		answer, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   testbed.ServiceAccount(c.service),
				Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + testbed.Namespace},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: c.namespace, Name: c.name,
				},
			},
		}, metav1.CreateOptions{})
		w.RequireNoError(err)
		if answer.Status.Allowed {
			w.Errorf("%s may %s %s %s in %q, but does not need it: %s", c.service, c.verb, c.resource, c.name, c.namespace, answer.Status.Reason)
		}
	}
}
