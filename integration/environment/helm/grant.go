package helm

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Grant has the rules of one role that is bound to an account.
type Grant struct {
	// Namespace is that of the binding; empty if the rules hold in every namespace.
	Namespace string
	// Role is the name of the role.
	Role  string
	Rules []rbacv1.PolicyRule
}

// GrantsOf returns the rules that rendered objects grant to a ServiceAccount, in the order of their bindings. A
// binding to a role that is not rendered is an error.
func GrantsOf(objects []runtime.Object, account string) ([]Grant, error) {
	type key struct{ kind, namespace, name string }
	roles := map[key][]rbacv1.PolicyRule{}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			roles[key{"ClusterRole", "", o.Name}] = o.Rules
		case *rbacv1.Role:
			roles[key{"Role", o.Namespace, o.Name}] = o.Rules
		}
	}
	var out []Grant
	bind := func(namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) error {
		if !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Name == account }) {
			return nil
		}
		of := key{ref.Kind, namespace, ref.Name}
		if ref.Kind == "ClusterRole" {
			of.namespace = ""
		}
		if len(roles[of]) == 0 {
			return fmt.Errorf("%s is bound to %s %s in namespace %q, which the chart does not render", account, ref.Kind, ref.Name, namespace)
		}
		out = append(out, Grant{Namespace: namespace, Role: ref.Name, Rules: roles[of]})
		return nil
	}
	for _, object := range objects {
		var err error
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			err = bind("", o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			err = bind(o.Namespace, o.RoleRef, o.Subjects)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
