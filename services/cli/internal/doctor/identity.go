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
	// Service is whose it is, or "" where the Deployment does not say.
	Service string
	// Missing says that Kubernetes has none of that name, so that nothing else is known.
	Missing bool
	// Role is the ARN of its annotation, or "".
	Role string
	// Pod is its Pod Identity association, which counts where there is no annotation; nil
	// when that was not looked at.
	Pod *Association
	// Trust is the trust policy of the role that it has by either; nil when that was not
	// looked at.
	Trust *string
}

// Association is one of EKS's Pod Identity; the zero value is that there is none.
type Association struct{ ID, Role string }

// Profile is an instance profile that node classes name (spec.instanceProfile).
type Profile struct {
	Name    string
	Classes []string
	Missing bool
	// Role is the name of the role in it, or "".
	Role string
}

func (a Account) subject() string { return "serviceaccount/" + a.Namespace + "/" + a.Name }

// role is the name of the role that the service is to have.
func (f Facts) role(service string) string { return f.Plan.Prefix + "-joist-" + service }

// accounts finds ServiceAccounts that Deployments name and that are not there.
func accounts(f Facts) []Finding {
	var all []Finding
	for _, a := range f.Accounts {
		if a.Missing {
			all = append(all, problem("account-missing", a.subject(), "there is no such ServiceAccount, which a Deployment names: no new pod of that is made",
				"helm upgrade of joist makes it, unless serviceAccount.create is false; else kubectl create serviceaccount "+a.Name+" --namespace "+a.Namespace+", with a role"))
		}
	}
	return all
}

// pods finds ServiceAccounts that EKS Pod Identity gives no role, or another's, where no
// annotation does.
func pods(f Facts) []Finding {
	var all []Finding
	for _, a := range f.Accounts {
		if a.Role != "" || a.Pod == nil || a.Service == "" {
			continue
		}
		want := f.role(a.Service)
		switch {
		case *a.Pod == Association{}:
			all = append(all, problem("pod-identity-missing", a.subject(), "it has neither a Pod Identity association nor a role in its annotation eks.amazonaws.com/role-arn: its pods get no credentials of their own",
				fmt.Sprintf("aws eks create-pod-identity-association --cluster-name %s --namespace %s --service-account %s --role-arn %s", f.Plan.Cluster, a.Namespace, a.Name, f.Place.Role(want))))
		case path.Base(a.Pod.Role) != want:
			all = append(all, problem("pod-identity-role", a.subject(), "its Pod Identity association names the role "+a.Pod.Role+" and not "+want+": its pods may do other things than the card of the "+a.Service+" says",
				fmt.Sprintf("aws eks update-pod-identity-association --cluster-name %s --association-id %s --role-arn %s", f.Plan.Cluster, a.Pod.ID, f.Place.Role(want))))
		case a.Trust != nil && !trustsPods(*a.Trust):
			all = append(all, problem("trust-pods", a.subject(), "the role "+a.Pod.Role+" of its Pod Identity association does not let pods.eks.amazonaws.com assume it and tag the session: its pods get no credentials",
				fmt.Sprintf("let pods.eks.amazonaws.com do sts:AssumeRole and sts:TagSession: aws iam update-assume-role-policy --role-name %s --policy-document file://trust.json, or %s", path.Base(a.Pod.Role), deploy)))
		}
	}
	return all
}

func trustsPods(trust string) bool {
	for _, action := range []string{"sts:AssumeRole", "sts:TagSession"} {
		if ok, err := allows(trust, "pods.eks.amazonaws.com", action); err != nil || !ok {
			return false
		}
	}
	return true
}

// trusts finds roles that their ServiceAccounts cannot assume (A039).
func trusts(f Facts) []Finding {
	var all []Finding
	for _, a := range f.Accounts {
		if a.Trust == nil || a.Role == "" {
			continue
		}
		subject := "system:serviceaccount:" + a.Namespace + ":" + a.Name
		t, err := webTrust(*a.Trust)
		fits := slices.ContainsFunc(t.subs, func(sub string) bool { ok, _ := path.Match(sub, subject); return ok })
		switch {
		case err != nil || !t.web || !fits && len(t.subs) > 0:
			what := "the role " + a.Role + " of its annotation lets no web identity assume it"
			if len(t.subs) > 0 {
				what = "the role " + a.Role + " of its annotation trusts " + strings.Join(t.subs, ", ") + ", which it is not"
			}
			all = append(all, problem("trust-subject", a.subject(), what+": its pods get no credentials", "set the condition of the role's trust policy on the claim :sub to "+subject))
		case f.Issuer != nil && !slices.ContainsFunc(t.providers, func(arn string) bool { return strings.HasSuffix(arn, ":oidc-provider/"+*f.Issuer) }):
			all = append(all, problem("trust-issuer", a.subject(), "the role "+a.Role+" of its annotation trusts "+strings.Join(t.providers, ", ")+", and the cluster's identity provider is "+*f.Issuer+": its pods get no credentials",
				"name "+f.Place.provider(*f.Issuer)+" as the principal: aws iam update-assume-role-policy --role-name "+path.Base(a.Role)+" --policy-document file://trust.json"))
		}
	}
	return all
}

// profiles finds instance profiles with which nothing is launched (A037).
func profiles(f Facts) []Finding {
	if f.NodeRole == nil || f.NodeRole.Missing {
		return nil
	}
	var all []Finding
	for _, p := range f.Profiles {
		subject, named := "instance-profile/"+p.Name, "EC2NodeClass "+strings.Join(p.Classes, ", ")
		add := fmt.Sprintf("aws iam add-role-to-instance-profile --instance-profile-name %s --role-name %s", p.Name, f.NodeRole.Name)
		switch {
		case p.Missing:
			all = append(all, problem("profile-missing", subject, "there is no such instance profile, which "+named+" names: nothing can be launched for it",
				"aws iam create-instance-profile --instance-profile-name "+p.Name+" && "+add))
		case p.Role == "":
			all = append(all, problem("profile-role", subject, "it holds no role, and "+named+" names it: nothing can be launched for it", add))
		case p.Role != f.NodeRole.Name:
			all = append(all, problem("profile-role", subject, "it holds the role "+p.Role+" and not "+f.NodeRole.Name+": the launcher may pass the latter alone, and "+named+" launches nothing",
				fmt.Sprintf("aws iam remove-role-from-instance-profile --instance-profile-name %s --role-name %s && %s; or name the role with --node-role, and deploy the stack with it", p.Name, p.Role, add)))
		}
	}
	return all
}
