package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// ProfileAdoption is an instance profile that Karpenter or Joist created for an EC2NodeClass with a role.
type ProfileAdoption struct {
	Name string `json:"name"`
	// Path is /karpenter/REGION/CLUSTER/UID/ with the UID of the EC2NodeClass; older versions of Karpenter used /.
	Path string `json:"path"`
	Role string `json:"role"`
	// NodeClass is the EC2NodeClass; "" if it does not exist any more.
	NodeClass string `json:"nodeClass,omitempty"`
	// Adopted reports that Joist recognizes the profile as the cluster's: it keeps it while an instance has it, and deletes it later.
	Adopted bool `json:"adopted"`
	// Detail says why, and what happens to the profile.
	Detail string `json:"detail"`
}

// profiles returns the instance profiles of the cluster in IAM, sorted by name.
func (f MigrationFacts) profiles() []ProfileAdoption {
	out := []ProfileAdoption{}
	for i := range f.Profiles {
		out = append(out, f.describeProfile(&f.Profiles[i]))
	}
	slices.SortFunc(out, func(a, b ProfileAdoption) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// describeProfile decides as the launcher does: a profile is the class's if it has the cluster's tag and the path with the class's UID.
func (f MigrationFacts) describeProfile(p *cloud.Profile) ProfileAdoption {
	out := ProfileAdoption{Name: p.Name, Path: p.Path, Role: p.Role}
	class := f.classOfProfile(p)
	remove := fmt.Sprintf("Once no instance has it: aws iam remove-role-from-instance-profile --instance-profile-name %s --role-name %s && aws iam delete-instance-profile --instance-profile-name %s", p.Name, p.Role, p.Name)
	if class != nil {
		out.NodeClass = class.Name
	}
	owner := karpenter.ClusterTagPrefix + f.Installation.Plan.Cluster
	switch {
	case p.Tags[owner] != "owned":
		out.Detail = "it does not have the tag " + owner + "=owned: Joist neither changes nor deletes it; nodes keep it"
	case class == nil:
		out.Detail = "its EC2NodeClass no longer exists: Joist does not delete it. " + remove
	case p.Path != f.pathOfClass(class):
		out.Detail = "its path is " + p.Path + " instead of " + f.pathOfClass(class) + ": nodes keep it, and Joist does not delete it. " + remove
	case class.Annotations[launchspec.ProfileAnnotation] == p.Name:
		out.Adopted, out.Detail = true, "Joist created it for new nodes; Karpenter uses it after a way back"
	default:
		out.Adopted, out.Detail = true, "nodes keep it; Joist creates its own for new nodes, and deletes this one at the earliest after an hour, once no instance has it"
	}
	return out
}

// classOfProfile returns the EC2NodeClass whose status names the profile, or whose UID is in its path; nil without one.
func (f MigrationFacts) classOfProfile(p *cloud.Profile) *karpenter.EC2NodeClass {
	at := slices.IndexFunc(f.Classes, func(c karpenter.EC2NodeClass) bool {
		return c.Status.InstanceProfile == p.Name || p.Path == f.pathOfClass(&c)
	})
	if at < 0 {
		return nil
	}
	return &f.Classes[at]
}

func (f MigrationFacts) pathOfClass(c *karpenter.EC2NodeClass) string {
	return launchspec.ProfilePath(f.Region, f.Installation.Plan.Cluster) + string(c.UID) + "/"
}

// checkProfiles describes which instance profiles Joist creates, adopts and keeps.
func checkProfiles(f MigrationFacts) MigrationStep {
	var managed []string
	for i := range f.Classes {
		if c := &f.Classes[i]; c.Spec.InstanceProfile == nil && c.Spec.Role != "" {
			managed = append(managed, "ec2nodeclass/"+c.Name)
		}
	}
	if bad := f.findings("instance-profile-missing", "instance-profile-role"); len(bad) > 0 {
		return blockedBy(bad)
	}
	if len(managed) == 0 && len(f.Profiles) == 0 {
		return done("all EC2NodeClasses name an instance profile, which Joist uses unchanged")
	}
	detail := simulate.FormatCount(len(managed), "EC2NodeClass") + " with a role: Joist creates an instance profile for each, and deletes Karpenter's at the earliest after an hour, once no instance has it"
	if s, unread := f.Unread[InstanceProfiles]; unread {
		return done(detail+"; the profiles in IAM were not listed ("+s.Reason+")", managed...)
	}
	if f.isUnread(AWS) {
		return done(detail+"; the profiles in IAM were not listed (no access to AWS)", managed...)
	}
	adopted := 0
	var others []string
	for _, p := range f.profiles() {
		if p.Adopted {
			adopted++
		} else {
			others = append(others, p.Name+" ("+p.Detail+")")
		}
	}
	detail += fmt.Sprintf("; %d of %s in IAM adopted", adopted, simulate.FormatCount(len(f.Profiles), "profile"))
	if len(others) > 0 {
		detail += "; not adopted: " + strings.Join(others, "; ")
	}
	return done(detail, managed...)
}

// assumptions lists the assumptions that are made because EKS and IAM were not read.
func (f MigrationFacts) assumptions() []string {
	out := []string{}
	isEKS := f.Installation.SelfManaged == nil
	if isEKS && f.Installation.CertificateAuthority == "" && f.CertificateAuthority != "" {
		out = append(out, "EKS returns the certificate authority of the ConfigMap kube-root-ca.crt, which is part of the hash of each EC2NodeClass: with another one, nodes would drift (eks:DescribeCluster was not read)")
	}
	if isEKS && f.Installation.Issuer == nil {
		out = append(out, "the roles of Joist trust the OIDC issuer of this cluster, or have Pod Identity associations (eks:DescribeCluster was not read)")
	}
	if isEKS && (f.Installation.Access == nil || f.Installation.Access.Mode == "") {
		out = append(out, "the nodes' role may join the cluster, by an access entry or by aws-auth, as Karpenter's nodes did (eks:DescribeCluster was not read)")
	}
	if f.isUnread(InstanceProfiles) || f.isUnread(AWS) {
		for i := range f.Classes {
			if c := &f.Classes[i]; c.Spec.InstanceProfile == nil && c.Status.InstanceProfile != "" {
				out = append(out, fmt.Sprintf("the instance profile %s of EC2NodeClass %s has the path of Karpenter 1.15 and the tag of the cluster, so that Joist deletes it later (iam:ListInstanceProfiles and iam:GetInstanceProfile were not read)", c.Status.InstanceProfile, c.Name))
			}
		}
	}
	return out
}
