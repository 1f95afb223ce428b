package facts

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// roleAnnotation gives a ServiceAccount a role of IAM.
const roleAnnotation = "eks.amazonaws.com/role-arn"

// account looks at a ServiceAccount, at the role that it has by its annotation or by Pod
// Identity, and at whom that role trusts.
func (g *collector) account(ctx context.Context, a doctor.Account) {
	var found corev1.ServiceAccount
	what := "the ServiceAccount " + a.Namespace + "/" + a.Name
	there, err := kube.Get(ctx, g.Kube, "/api/v1/namespaces/"+a.Namespace+"/serviceaccounts/"+a.Name, &found)
	if err != nil {
		g.recordSkipped(what, err, "the right in Kubernetes to get serviceaccounts in "+a.Namespace)
		return
	}
	if !there {
		a.Missing = true
		g.recordAccount(a)
		return
	}
	a.Role = found.Annotations[roleAnnotation]
	if !g.reached {
		return
	}
	if a.Role != "" {
		g.start("the role "+a.Role, "iam:GetRole", func() error { return g.trust(ctx, a, a.Role) })
		return
	}
	g.start("the Pod Identity of "+what, "eks:ListPodIdentityAssociations and eks:DescribePodIdentityAssociation", func() error {
		if !g.asksEKS(ctx) {
			g.recordAccount(a)
			return nil
		}
		pod, err := g.association(ctx, a)
		if err != nil {
			return err
		}
		a.Pod = &pod
		if pod.Role == "" {
			g.recordAccount(a)
			return nil
		}
		g.start("the role "+pod.Role, "iam:GetRole", func() error { return g.trust(ctx, a, pod.Role) })
		return nil
	})
}

// association is the ServiceAccount's, of which EKS lets it have one.
func (g *collector) association(ctx context.Context, a doctor.Account) (doctor.Association, error) {
	client := eks.NewFromConfig(g.config)
	listed, err := client.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{ClusterName: &g.Plan.Cluster, Namespace: &a.Namespace, ServiceAccount: &a.Name})
	if err != nil || len(listed.Associations) == 0 {
		return doctor.Association{}, err
	}
	id := listed.Associations[0].AssociationId
	told, err := client.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: &g.Plan.Cluster, AssociationId: id})
	if err != nil {
		return doctor.Association{}, err
	}
	if told.Association == nil {
		return doctor.Association{}, errors.New("EKS returned no association")
	}
	return doctor.Association{ID: aws.ToString(id), Role: aws.ToString(told.Association.RoleArn)}, nil
}

// trust looks at whom the role trusts that a ServiceAccount has. That it does not exist
// is found when its rights are looked at.
func (g *collector) trust(ctx context.Context, a doctor.Account, role string) error {
	var err error
	a.Trust, err = g.trustOf(ctx, role)
	g.recordAccount(a)
	return err
}

// trustOf is the trust policy of a role, or nil where there is no such role.
func (g *collector) trustOf(ctx context.Context, role string) (*string, error) {
	name := path.Base(role)
	told, err := iam.NewFromConfig(g.config).GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if isMissing(err) || err == nil && told.Role == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text := decodePolicy(told.Role.AssumeRolePolicyDocument)
	return &text, nil
}

// recordAccount writes down a ServiceAccount.
func (g *collector) recordAccount(a doctor.Account) {
	g.setFact(func(f *doctor.Facts) { f.Accounts = append(f.Accounts, a) })
}

// classes looks at EC2NodeClasses, and at the instance profiles that they name.
func (g *collector) classes(ctx context.Context) error {
	var found struct{ Items []karpenter.EC2NodeClass }
	if _, err := kube.Get(ctx, g.Kube, "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", &found); err != nil {
		return err
	}
	named := map[string][]string{}
	byRole := false
	for i := range found.Items {
		c := &found.Items[i]
		if c.Spec.InstanceProfile == nil {
			byRole = true
			continue
		}
		named[*c.Spec.InstanceProfile] = append(named[*c.Spec.InstanceProfile], c.Name)
	}
	g.setFact(func(f *doctor.Facts) { f.ByRole = byRole })
	if !g.reached {
		return nil
	}
	for name, classes := range named {
		slices.Sort(classes)
		g.start("the instance profile "+name, "iam:GetInstanceProfile", func() error { return g.profile(ctx, doctor.Profile{Name: name, Classes: classes}) })
	}
	return nil
}

// profile looks at the role that an instance profile holds.
func (g *collector) profile(ctx context.Context, p doctor.Profile) error {
	told, err := iam.NewFromConfig(g.config).GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &p.Name})
	switch {
	case isMissing(err):
		p.Missing = true
	case err != nil:
		return err
	case told.InstanceProfile != nil && len(told.InstanceProfile.Roles) > 0:
		p.Role = aws.ToString(told.InstanceProfile.Roles[0].RoleName)
	}
	g.setFact(func(f *doctor.Facts) { f.Profiles = append(f.Profiles, p) })
	return nil
}
