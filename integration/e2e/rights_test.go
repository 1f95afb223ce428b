package e2e

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// judgeRights asks the API server what the services may not do. That they may do
// what they must, the rest of the story shows.
func (w *world) judgeRights() {
	w.Helper()
	for _, c := range []struct {
		service, verb, group, resource, namespace, name string
	}{
		{"watcher", "create", "karpenter.sh", "nodeclaims", "", ""},
		{"watcher", "delete", "", "pods", "default", ""},
		{"watcher", "update", "", "nodes", "", ""},
		{"watcher", "list", "", "secrets", namespace, ""},
		{"watcher", "list", "", "configmaps", "kube-system", ""},
		{"watcher", "update", "", "configmaps", namespace, "joist-unavailable"},
		{"watcher", "update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"},
		{"lifecycle", "list", "", "secrets", namespace, ""},
		{"lifecycle", "create", "", "pods", "default", ""},
		{"lifecycle", "create", "", "nodes", "", ""},
		{"lifecycle", "create", "karpenter.sh", "nodepools", "", ""},
		{"lifecycle", "delete", "karpenter.sh", "nodepools", "", ""},
		{"lifecycle", "delete", "karpenter.k8s.aws", "ec2nodeclasses", "", ""},
		{"lifecycle", "update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"},
	} {
		answer, err := w.kube.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   account(c.service),
				Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: c.namespace, Name: c.name,
				},
			},
		}, metav1.CreateOptions{})
		w.check(err)
		if answer.Status.Allowed {
			w.Errorf("%s may %s %s %s in %q, and needs it for nothing: %s", c.service, c.verb, c.resource, c.name, c.namespace, answer.Status.Reason)
		}
	}
}

// account is the user that a service is to Kubernetes.
func account(service string) string {
	return "system:serviceaccount:" + namespace + ":joist-" + service
}
