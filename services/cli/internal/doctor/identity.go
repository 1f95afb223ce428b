package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Account is a ServiceAccount of one of Joist's Deployments.
type Account struct {
	Namespace, Name string
	// Service is the service of its Deployment, or "" if unknown.
	Service string
	// Missing reports that the ServiceAccount does not exist. Nothing else is known then.
	Missing bool
	// Role is the ARN in its annotation, or "".
	Role string
	// PodIdentity is its Pod Identity association, which matters only without an annotation;
	// nil if it was not read.
	PodIdentity *Association
	// Trust is the trust policy of its role; nil if it was not read.
	Trust *string
}

// Association is a Pod Identity association; the zero value means that none exists.
type Association struct{ ID, Role string }

// Profile is an instance profile that EC2NodeClasses name in spec.instanceProfile.
type Profile struct {
	Name    string
	Classes []string
	Missing bool
	// Role is the name of its role, or "".
	Role string
}

func (a Account) subject() string { return "serviceaccount/" + a.Namespace + "/" + a.Name }

// roleName returns the name of a service's role in the stack.
func (f Facts) roleName(service string) string { return f.Plan.Prefix + "-joist-" + service }

// checkAccounts finds missing ServiceAccounts.
func checkAccounts(f Facts) []Finding {
	var all []Finding
	for _, a := range f.Accounts {
		if a.Missing {
			all = append(all, newProblem("service-account-missing", a.subject(), "the ServiceAccount does not exist, but a Deployment names it: the Deployment cannot create pods",
				"helm upgrade joist, or if serviceAccount.create is false: kubectl create serviceaccount "+a.Name+" --namespace "+a.Namespace+", with a role"))
		}
	}
	return all
}

// checkPodIdentity finds ServiceAccounts without an annotation whose Pod Identity association
// is missing or has a wrong role.
func checkPodIdentity(f Facts) []Finding {
	var all []Finding
	for _, a := range f.Accounts {
		if a.Role != "" || a.PodIdentity == nil || a.Service == "" {
			continue
		}
		want := f.roleName(a.Service)
		switch {
		case *a.PodIdentity == Association{}:
			all = append(all, newProblem("pod-identity-missing", a.subject(), "the ServiceAccount has neither a Pod Identity association nor a role in the annotation eks.amazonaws.com/role-arn: its pods get no AWS credentials",
				fmt.Sprintf("aws eks create-pod-identity-association --cluster-name %s --namespace %s --service-account %s --role-arn %s", f.Plan.Cluster, a.Namespace, a.Name, f.Location.RoleARN(want))))
		case path.Base(a.PodIdentity.Role) != want:
			all = append(all, newProblem("pod-identity-role", a.subject(), "the Pod Identity association has the role "+a.PodIdentity.Role+" instead of "+want+": its pods do not have the permissions that the "+a.Service+" needs",
				fmt.Sprintf("aws eks update-pod-identity-association --cluster-name %s --association-id %s --role-arn %s", f.Plan.Cluster, a.PodIdentity.ID, f.Location.RoleARN(want))))
		case a.Trust != nil && !trustsPods(*a.Trust):
			all = append(all, newProblem("trust-pods", a.subject(), "the role "+a.PodIdentity.Role+" of the Pod Identity association does not let pods.eks.amazonaws.com assume it and tag the session: its pods get no AWS credentials",
				fmt.Sprintf("allow pods.eks.amazonaws.com sts:AssumeRole and sts:TagSession: aws iam update-assume-role-policy --role-name %s --policy-document file://trust.json, or %s", path.Base(a.PodIdentity.Role), deployFix)))
		}
	}
	return all
}

func trustsPods(trust string) bool {
	for _, action := range []string{"sts:AssumeRole", "sts:TagSession"} {
		if ok, err := allowsService(trust, "pods.eks.amazonaws.com", action); err != nil || !ok {
			return false
		}
	}
	return true
}

// checkTrusts finds annotated roles that their ServiceAccounts cannot assume.
func checkTrusts(f Facts) []Finding {
	var all []Finding
	for _, a := range f.Accounts {
		if a.Trust == nil || a.Role == "" {
			continue
		}
		subject := "system:serviceaccount:" + a.Namespace + ":" + a.Name
		t, err := parseWebTrust(*a.Trust)
		fits := slices.ContainsFunc(t.subs, func(sub string) bool { ok, _ := path.Match(sub, subject); return ok })
		switch {
		case err != nil || !t.web || !fits && len(t.subs) > 0:
			what := "the trust policy of the annotated role " + a.Role + " lets no web identity assume it"
			if len(t.subs) > 0 {
				what = "the trust policy of the annotated role " + a.Role + " trusts " + strings.Join(t.subs, ", ") + " and not this ServiceAccount"
			}
			all = append(all, newProblem("trust-subject", a.subject(), what+": its pods get no AWS credentials", "set the condition of the role's trust policy on the claim :sub to "+subject))
		case f.Issuer != nil && !slices.ContainsFunc(t.providers, func(arn string) bool { return strings.HasSuffix(arn, ":oidc-provider/"+*f.Issuer) }):
			all = append(all, newProblem("trust-issuer", a.subject(), "the trust policy of the annotated role "+a.Role+" trusts "+strings.Join(t.providers, ", ")+", but the cluster's identity provider is "+*f.Issuer+": its pods get no AWS credentials",
				"set the principal to "+f.Location.providerARN(*f.Issuer)+": aws iam update-assume-role-policy --role-name "+path.Base(a.Role)+" --policy-document file://trust.json"))
		}
	}
	return all
}

// checkProfiles finds instance profiles with which no instance can be launched.
func checkProfiles(f Facts) []Finding {
	if f.NodeRole == nil || f.NodeRole.Missing {
		return nil
	}
	var all []Finding
	for _, p := range f.Profiles {
		subject, named := "instance-profile/"+p.Name, "EC2NodeClass "+strings.Join(p.Classes, ", ")
		add := fmt.Sprintf("aws iam add-role-to-instance-profile --instance-profile-name %s --role-name %s", p.Name, f.NodeRole.Name)
		switch {
		case p.Missing:
			all = append(all, newProblem("instance-profile-missing", subject, "the instance profile does not exist, but "+named+" names it: nothing can be launched for the node class",
				"aws iam create-instance-profile --instance-profile-name "+p.Name+" && "+add))
		case p.Role == "":
			all = append(all, newProblem("instance-profile-role", subject, "the instance profile has no role, but "+named+" names it: nothing can be launched for the node class", add))
		case p.Role != f.NodeRole.Name:
			all = append(all, newProblem("instance-profile-role", subject, "the instance profile has the role "+p.Role+" instead of "+f.NodeRole.Name+", the only role that the launcher may pass: nothing can be launched for "+named,
				fmt.Sprintf("aws iam remove-role-from-instance-profile --instance-profile-name %s --role-name %s && %s; or deploy the stack with that node role and run joist doctor with --node-role", p.Name, p.Role, add)))
		}
	}
	return all
}
