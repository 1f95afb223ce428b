// Package planningtest has shared test helpers for planning: the objects of a small real installation,
// builders of batches, and CheckResult, which runs the plan validator on a result.
package planningtest

import (
	"embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

//go:embed testdata
var files embed.FS

// Now is the time of the test batches.
var Now = time.Date(2026, time.November, 20, 9, 30, 0, 0, time.UTC)

// Region is the region of the test installation.
const Region = "ap-northeast-2"

// NewNodePool returns the default pool: small Graviton instances in one zone, with spot allowed.
func NewNodePool() karpenter.NodePool { return readTestObject[karpenter.NodePool]("nodepool.yaml") }

// NewNodeClass returns the default node class, resolved and ready.
func NewNodeClass() karpenter.EC2NodeClass {
	return readTestObject[karpenter.EC2NodeClass]("ec2nodeclass.yaml")
}

func readTestObject[T any](name string) T {
	var out T
	text, err := files.ReadFile("testdata/" + name)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("reading the test object %s: %v", name, err))
	}
	return out
}

// NewBatch returns a batch of the default installation with the pending classes.
func NewBatch(pending ...planning.PodClass) planning.Batch {
	return planning.Batch{
		Outbox: "0b0e", Seq: 7, Pending: pending,
		Snapshot: planning.Snapshot{
			TakenAt: Now, Cluster: "demo", UID: "4be4ec4e-6ba1-4c0a-9b36-000000000001",
			NodePools: []karpenter.NodePool{NewNodePool()}, NodeClasses: []karpenter.EC2NodeClass{NewNodeClass()},
		},
	}
}

// NewPods returns a class of count equal pods; edits change its spec.
func NewPods(name string, count int, cpu, memory string, edits ...func(*planning.PodSpec)) planning.PodClass {
	class := planning.PodClass{Spec: planning.PodSpec{Namespace: "default", OwnerKind: "ReplicaSet", Requests: NewRequests(cpu, memory)}}
	for _, edit := range edits {
		edit(&class.Spec)
	}
	for i := range count {
		class.Pods = append(class.Pods, planning.PodRef{
			Name: fmt.Sprintf("%s-%d", name, i), UID: fmt.Sprintf("%s-%04d", name, i),
			Created: Now.Add(-time.Minute + time.Duration(i)*time.Millisecond),
		})
	}
	return class
}

// NewRequests returns the requests of one pod.
func NewRequests(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse("1"),
	}
}

// NewCatalogue returns the embedded catalogue of the region, with the facts that nodes need to join
// the test cluster.
func NewCatalogue() catalog.Catalogue {
	cat, err := catalog.EmbeddedCatalogue(Region)
	if err != nil {
		panic(fmt.Sprintf("reading the embedded catalogue: %v", err))
	}
	cat.Cluster = catalog.ClusterFacts{
		Name: "demo", Endpoint: "https://4BE4EC4E.gr7.ap-northeast-2.eks.amazonaws.com", CABundle: "LS0tLS1CRUdJTg==",
		ServiceCIDR: "10.100.0.0/16", Version: "1.35", IPFamily: "ipv4",
	}
	return cat
}

// WithoutSpot returns the batch with all spot offerings unavailable, so that its plan is on demand.
func WithoutSpot(batch planning.Batch) planning.Batch {
	batch.Snapshot.Unavailable = append(batch.Snapshot.Unavailable, planning.Unavailable{
		Offering: event.Offering{CapacityType: karpenter.CapacityTypeSpot}, Until: Now.Add(1),
	})
	return batch
}
