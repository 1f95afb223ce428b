package planning_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

var update = flag.Bool("update", false, "write the newest golden document")

// newest has every field added since the first documents. Never edit these documents: a field that is
// added later needs another document.
const newest = "batch-4.json"

// TestDocumentsRoundTrip checks that old documents stay readable and are written unchanged, so
// that their plans can be repeated.
func TestDocumentsRoundTrip(t *testing.T) {
	files, err := filepath.Glob("testdata/documents/batch-*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var batch planning.Batch
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&batch); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(string(text), written(t, batch)); diff != "" {
			t.Errorf("%s (-written +read and written again):\n%s", file, diff)
		}
	}
}

func TestNewestDocument(t *testing.T) {
	file := filepath.Join("testdata/documents", newest)
	text := written(t, sample())
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text); diff != "" {
		t.Errorf("the encoding of a document changed:\n%s", diff)
	}
}

func written(t *testing.T, batch planning.Batch) string {
	t.Helper()
	text, err := json.MarshalIndent(batch, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// sample returns a batch with the fields that the older documents lack: those of Dynamic Resource
// Allocation.
func sample() planning.Batch {
	request := resourcev1.DeviceRequest{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}},
	}}
	pods := planningtest.NewPods("train", 2, "1", "1Gi", func(s *planning.PodSpec) {
		s.ResourceClaims = 3
		s.Claims = []planning.PodClaim{
			{Requests: []resourcev1.DeviceRequest{request}, Constraints: []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("gpu.nvidia.com/type"))}}},
			{Name: "shared", Requests: []resourcev1.DeviceRequest{request}},
			{Problem: `resourceclaim "default/late" not found`},
		}
	})
	for i := range pods.Pods {
		pods.Pods[i].Claims = []string{fmt.Sprint("train-", i, "-gpu"), "shared", "late"}
	}
	batch := planningtest.NewBatch(pods)
	s := &batch.Snapshot
	s.NodePools[0].Status, s.NodeClasses[0].Status.Conditions = karpenter.NodePoolStatus{}, nil
	s.Settings = planning.Settings{PlanDRARequests: true, Gates: planning.Gates{DRANVIDIAGPU: true, DRAEFA: true}}
	part := event.Ref{Kind: planning.NodesKind, Digest: event.DigestOf([]byte("part")), Size: 10}
	s.NodeParts = planning.NodeParts{Refs: []event.Ref{part}, Runs: []planning.NodeRun{{1, 0, 3}, {0, 0, 1}, {1, 4, 2}}}
	s.Devices = planning.DeviceState{
		Classes: []resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}, Spec: resourcev1.DeviceClassSpec{Selectors: request.Exactly.Selectors}}},
		Slices: []resourcev1.ResourceSlice{{
			ObjectMeta: metav1.ObjectMeta{Name: "slice", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "n1"}}},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.nvidia.com", NodeName: new("node-1"), Pool: resourcev1.ResourcePool{Name: "node-1", Generation: 2, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{{
					Name: "gpu-0", AllowMultipleAllocations: new(true),
					Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: new("gpu")}, "index": {IntValue: new(int64(0))}},
					Capacity:         map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("22528Mi")}},
					ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: map[string]resourcev1.Counter{"slices": {Value: resource.MustParse("7")}}}},
				}},
			},
		}},
		Claims: []resourcev1.ResourceClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared", UID: "s"},
			Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}},
			Status: resourcev1.ResourceClaimStatus{
				Allocation:  &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "node-1", Device: "gpu-0"}}}},
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train-0", UID: "u"}},
			},
		}},
	}
	return batch
}
