package migrate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Fact is a kind of fact that steps require.
type Fact string

// The facts. The facts that joist doctor also reads have the subject under which it lists them as skipped.
const (
	Deployments Fact = "Deployments"
	Leases      Fact = "Karpenter's Lease"
	CRDs        Fact = "the definitions of the CRDs"
	Webhooks    Fact = "webhook configurations"
	NodePools   Fact = "NodePools"
	NodeClasses Fact = "EC2NodeClasses"
	NodeClaims  Fact = "NodeClaims"
	Nodes       Fact = "Nodes"
	// ClusterCA is the certificate authority of the cluster, which is part of the hash of an EC2NodeClass.
	ClusterCA Fact = "the cluster's certificate authority"
	// AWS is the account.
	AWS Fact = "AWS"
	// InstanceProfiles are the instance profiles of the cluster in IAM.
	InstanceProfiles Fact = "the instance profiles in IAM"
	// Today is what the plan of today's pods needs: NodePools, nodes, pods and prices.
	Today Fact = "what a plan of today's pods needs"
)

// MigrationFacts are the facts about a cluster. A fact in Unread has its zero value.
type MigrationFacts struct {
	// Installation is what joist doctor reads, and Findings are its findings.
	Installation doctor.Facts
	Findings     []doctor.Finding
	// Skipped are the facts about AWS that could not be read one by one.
	Skipped []doctor.Skipped
	// Unread are the facts that could not be read, with the missing permission.
	Unread map[Fact]doctor.Skipped
	// Namespace is where Joist is or will be installed.
	Namespace string
	Now       time.Time

	CRDs     []CRD
	Webhooks []Webhook
	Pools    []karpenter.NodePool
	Classes  []karpenter.EC2NodeClass
	Claims   []karpenter.NodeClaim
	Nodes    []corev1.Node
	// Refused are the objects that Joist refuses to read, with the reason.
	Refused []ManifestProblem
	// CertificateAuthority is base64, as EKS returns it.
	CertificateAuthority string
	// Profiles are the instance profiles below ProfilePath, and the profiles that EC2NodeClasses have in their
	// status. Region is the region in the path.
	Profiles []cloud.Profile
	Region   string
	// Plan is what Joist would do with today's pods and nodes; nil if Today is unread.
	Plan *LivePlan
}

// CRD has the relevant parts of a CustomResourceDefinition.
type CRD struct {
	// Name is the plural and the group, such as nodepools.karpenter.sh.
	Name string
	// Versions are the served versions, and Stored the versions in which objects may be stored.
	Versions, Stored []string
	// WebhookService is the namespace and name of the conversion webhook's Service; "" without one.
	WebhookService string
	// Missing are fields of Joist's definition that v1 lacks.
	Missing []string
}

// Webhook is a validating or mutating webhook configuration for Karpenter's API groups.
type Webhook struct {
	// Kind is the resource, such as validatingwebhookconfigurations.
	Kind, Name string
	// Service is the namespace and name of the Service that it calls.
	Service string
}

// ManifestProblem is an object that Joist refuses or warns about.
type ManifestProblem struct {
	Object, Reason string
	// Warning reports that Joist accepts the object.
	Warning bool
}

// missing returns the unread facts of a list, AWS and Kubernetes as a whole first.
func (f MigrationFacts) missing(needs []Fact) []doctor.Skipped {
	var out []doctor.Skipped
	for _, need := range needs {
		if s, unread := f.Unread[need]; unread && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// isUnread reports whether a fact could not be read.
func (f MigrationFacts) isUnread(fact Fact) bool {
	_, unread := f.Unread[fact]
	return unread
}

// claimsOf returns the NodeClaims of a NodePool.
func (f MigrationFacts) claimsOf(pool string) []*karpenter.NodeClaim {
	var out []*karpenter.NodeClaim
	for i := range f.Claims {
		if f.Claims[i].Labels[karpenter.NodePoolLabelKey] == pool {
			out = append(out, &f.Claims[i])
		}
	}
	return out
}

// findClass returns the EC2NodeClass of a NodePool, or nil.
func (f MigrationFacts) findClass(pool *karpenter.NodePool) *karpenter.EC2NodeClass {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil {
		return nil
	}
	for i := range f.Classes {
		if f.Classes[i].Name == ref.Name {
			return &f.Classes[i]
		}
	}
	return nil
}
