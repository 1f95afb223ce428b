package simulate

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/catalog/expression"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// PlaceholderFacts returns placeholders for the data that nodes need to join. Plans do not depend
// on it, but a launch request needs it.
func PlaceholderFacts(name string) catalog.ClusterFacts {
	return catalog.ClusterFacts{
		Name: name, Endpoint: "https://cluster.example.com", ServiceCIDR: "10.100.0.0/16", IPFamily: "ipv4",
		CABundle: base64.StdEncoding.EncodeToString([]byte("placeholder")),
	}
}

// assumePoolsReady makes NodePools ready that have no condition.
func assumePoolsReady(s *planning.Snapshot, now time.Time) {
	for i := range s.NodePools {
		status := &s.NodePools[i].Status
		if _, known := status.Conditions.Get(karpenter.ConditionTypeReady); !known {
			status.Conditions = status.Conditions.With(assumedReady(), now)
		}
	}
}

// assumedReady returns the assumed condition Ready.
func assumedReady() metav1.Condition {
	return metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Assumed"}
}

// assumeClasses assumes the values that the cluster would have resolved for each node class, and
// creates classes that a pool names but the manifests lack.
func (a *PlanResult) assumeClasses(s *planning.Snapshot, now time.Time) {
	for _, pool := range s.NodePools {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if ref == nil || slices.ContainsFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == ref.Name }) {
			continue
		}
		s.NodeClasses = append(s.NodeClasses, newAssumedClass(ref.Name))
		a.assume("EC2NodeClass %s is not in the files: assuming AL2023 with its defaults", ref.Name)
	}
	for i := range s.NodeClasses {
		class := &s.NodeClasses[i]
		a.assumeStatus(class, now)
		if settings, err := class.Spec.Kubelet.Parse(); err == nil && expression.Uses(settings) {
			s.Settings.Gates.NodeClassCEL = true
			a.assume("The expressions in spec.kubelet of EC2NodeClass %s are evaluated as with the AWS feature gate NodeClassCEL", class.Name)
		}
	}
}

// AssumeClasses adds the node classes that NodePools of a running cluster name and that could not be
// read, and completes them. It returns the assumptions.
func AssumeClasses(s *planning.Snapshot, cat catalog.Catalogue) []string {
	a := PlanResult{Catalogue: cat}
	for _, pool := range s.NodePools {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if ref == nil || slices.ContainsFunc(s.NodeClasses, func(c karpenter.EC2NodeClass) bool { return c.Name == ref.Name }) {
			continue
		}
		class := newAssumedClass(ref.Name)
		a.assume("EC2NodeClass %s was not read: assuming AL2023 with its defaults", ref.Name)
		a.assumeStatus(&class, s.TakenAt)
		s.NodeClasses = append(s.NodeClasses, class)
	}
	return a.Assumptions
}

// newAssumedClass returns a node class with the defaults of AL2023.
func newAssumedClass(name string) karpenter.EC2NodeClass {
	out := karpenter.EC2NodeClass{Spec: karpenter.EC2NodeClassSpec{AMIFamily: new(karpenter.AMIFamilyAL2023)}}
	out.Name = name
	return out
}

// assumeStatus completes the status of a class. A status with the condition Ready comes from a
// cluster and is kept.
func (a *PlanResult) assumeStatus(class *karpenter.EC2NodeClass, now time.Time) {
	status := &class.Status
	if _, known := status.Conditions.Get(karpenter.ConditionTypeReady); known {
		return
	}
	var took []string
	if len(status.Subnets) == 0 {
		zones := zoneIDs(a.Catalogue)
		for _, zone := range slices.Sorted(maps.Keys(zones)) {
			status.Subnets = append(status.Subnets, karpenter.Subnet{ID: "subnet-assumed-" + zone, Zone: zone, ZoneID: zones[zone]})
		}
		took = append(took, "a subnet in each zone of "+a.Catalogue.Region)
	}
	if len(status.SecurityGroups) == 0 {
		status.SecurityGroups = []karpenter.SecurityGroup{{ID: "sg-assumed"}}
		took = append(took, "a security group")
	}
	if len(status.AMIs) == 0 {
		for _, arch := range []string{catalog.AMD64, catalog.ARM64} {
			status.AMIs = append(status.AMIs, karpenter.AMI{ID: "ami-assumed-" + arch, Requirements: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
			}})
		}
		took = append(took, "an image for each architecture")
	}
	if status.InstanceProfile == "" && class.Spec.InstanceProfile == nil {
		status.InstanceProfile = "assumed"
		took = append(took, "an instance profile")
	}
	status.Conditions = status.Conditions.With(assumedReady(), now)
	if len(took) > 0 {
		a.assume("EC2NodeClass %s: assuming that it finds %s", class.Name, strings.Join(took, ", "))
	}
}

// zoneIDs maps the zones of a region to their IDs.
func zoneIDs(cat catalog.Catalogue) map[string]string {
	out := map[string]string{}
	for _, t := range cat.Types {
		for _, o := range t.Offerings {
			out[o.Zone] = o.ZoneID
		}
	}
	return out
}
