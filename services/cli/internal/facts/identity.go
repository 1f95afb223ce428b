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

// roleAnnotation is the annotation of a ServiceAccount with its IAM role.
const roleAnnotation = "eks.amazonaws.com/role-arn"

// readServiceAccount reads a ServiceAccount, its role from the annotation or from Pod
// Identity, and the role's trust policy.
func (g *collector) readServiceAccount(ctx context.Context, a doctor.Account) {
	var found corev1.ServiceAccount
	what := "the ServiceAccount " + a.Namespace + "/" + a.Name
	exists, err := kube.Get(ctx, g.Kube, "/api/v1/namespaces/"+a.Namespace+"/serviceaccounts/"+a.Name, &found)
	if err != nil {
		g.recordSkipped(what, err, "the right in Kubernetes to get serviceaccounts in "+a.Namespace)
		return
	}
	if !exists {
		a.Missing = true
		g.recordAccount(a)
		return
	}
	a.Role = found.Annotations[roleAnnotation]
	if !g.hasAWS {
		return
	}
	if a.Role != "" {
		g.startDependentCall(ctx, "the role "+a.Role, "iam:GetRole", func(ctx context.Context) error { return g.readAccountTrust(ctx, a, a.Role) })
		return
	}
	g.startDependentCall(ctx, "the Pod Identity of "+what, "eks:ListPodIdentityAssociations and eks:DescribePodIdentityAssociation", func(limited context.Context) error {
		if !g.usesEKS(limited) {
			g.recordAccount(a)
			return nil
		}
		pod, err := g.readAssociation(limited, a)
		if err != nil {
			return err
		}
		a.PodIdentity = &pod
		if pod.Role == "" {
			g.recordAccount(a)
			return nil
		}
		g.startDependentCall(ctx, "the role "+pod.Role, "iam:GetRole", func(ctx context.Context) error { return g.readAccountTrust(ctx, a, pod.Role) })
		return nil
	})
}

// readAssociation reads the Pod Identity association of a ServiceAccount. EKS allows only one.
func (g *collector) readAssociation(ctx context.Context, a doctor.Account) (doctor.Association, error) {
	client := eks.NewFromConfig(g.config)
	listed, err := client.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{ClusterName: &g.Plan.Cluster, Namespace: &a.Namespace, ServiceAccount: &a.Name})
	if err != nil || len(listed.Associations) == 0 {
		return doctor.Association{}, err
	}
	id := listed.Associations[0].AssociationId
	described, err := client.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: &g.Plan.Cluster, AssociationId: id})
	if err != nil {
		return doctor.Association{}, err
	}
	if described.Association == nil {
		return doctor.Association{}, errors.New("EKS returned no association")
	}
	return doctor.Association{ID: aws.ToString(id), Role: aws.ToString(described.Association.RoleArn)}, nil
}

// readAccountTrust reads the trust policy of a ServiceAccount's role. The policy simulation
// reports a missing role.
func (g *collector) readAccountTrust(ctx context.Context, a doctor.Account, role string) error {
	var err error
	a.Trust, err = g.readTrust(ctx, role)
	g.recordAccount(a)
	return err
}

// readTrust returns the trust policy of a role; nil if the role does not exist.
func (g *collector) readTrust(ctx context.Context, role string) (*string, error) {
	name := path.Base(role)
	found, err := iam.NewFromConfig(g.config).GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if isMissing(err) || err == nil && found.Role == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text := decodePolicy(found.Role.AssumeRolePolicyDocument)
	return &text, nil
}

// recordAccount records a ServiceAccount.
func (g *collector) recordAccount(a doctor.Account) {
	g.setFact(func(f *doctor.Facts) { f.Accounts = append(f.Accounts, a) })
}

// readNodeClasses reads the EC2NodeClasses and the instance profiles that they name.
func (g *collector) readNodeClasses(ctx context.Context) error {
	var found struct{ Items []karpenter.EC2NodeClass }
	if _, err := kube.Get(ctx, g.Kube, "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", &found); err != nil {
		return err
	}
	named := map[string][]string{}
	byRole := false
	var use *doctor.DiscoveryUse
	for i := range found.Items {
		c := &found.Items[i]
		use = g.addDiscovery(use, c)
		if c.Spec.InstanceProfile == nil {
			byRole = true
			continue
		}
		named[*c.Spec.InstanceProfile] = append(named[*c.Spec.InstanceProfile], c.Name)
	}
	g.setFact(func(f *doctor.Facts) { f.HasRoleClasses, f.Discovery = byRole, use })
	if !g.hasAWS {
		return nil
	}
	for name, classes := range named {
		slices.Sort(classes)
		g.startDependentCall(ctx, "the instance profile "+name, "iam:GetInstanceProfile", func(ctx context.Context) error {
			return g.readProfile(ctx, doctor.Profile{Name: name, Classes: classes})
		})
	}
	return nil
}

// addDiscovery adds how an EC2NodeClass uses the discovery tag. A class that also selects by other tags or by
// IDs does not need it.
func (g *collector) addDiscovery(use *doctor.DiscoveryUse, c *karpenter.EC2NodeClass) *doctor.DiscoveryUse {
	if use == nil {
		use = &doctor.DiscoveryUse{}
	}
	isOther := func(tags map[string]string) bool {
		value := tags[doctor.DiscoveryTag]
		return value != g.Plan.Cluster && value != "*"
	}
	subnets, groups := c.Spec.SubnetSelectorTerms, c.Spec.SecurityGroupSelectorTerms
	if len(subnets) > 0 && !slices.ContainsFunc(subnets, func(t karpenter.SubnetSelectorTerm) bool { return isOther(t.Tags) }) {
		use.Subnets = true
	}
	if len(groups) > 0 && !slices.ContainsFunc(groups, func(t karpenter.SecurityGroupSelectorTerm) bool { return isOther(t.Tags) }) {
		use.SecurityGroups = true
	}
	return use
}

// readProfile reads the role of an instance profile.
func (g *collector) readProfile(ctx context.Context, p doctor.Profile) error {
	found, err := iam.NewFromConfig(g.config).GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &p.Name})
	switch {
	case isMissing(err):
		p.Missing = true
	case err != nil:
		return err
	case found.InstanceProfile != nil && len(found.InstanceProfile.Roles) > 0:
		p.Role = aws.ToString(found.InstanceProfile.Roles[0].RoleName)
	}
	g.setFact(func(f *doctor.Facts) { f.Profiles = append(f.Profiles, p) })
	return nil
}
