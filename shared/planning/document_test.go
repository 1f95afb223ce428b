package planning_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

var update = flag.Bool("update", false, "write the newest golden document")

// newest has every field added since the first documents. Never edit these documents: a field that is
// added later needs another document.
const newest = "batch-2.json"

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

// sample returns a batch with the fields that batch-1.json lacks.
func sample() planning.Batch {
	own := planningtest.NewPods("db", 2, "1", "1Gi", func(s *planning.PodSpec) {
		s.Volumes = []planning.Volume{{Driver: "ebs.csi.aws.com"}, {Claim: "shared", Driver: "efs.csi.aws.com"}}
	})
	batch := planningtest.NewBatch(own)
	batch.Ignored = []planning.IgnoredPods{{Namespace: "kube-system", Reason: "it requires karpenter.sh/nodepool to be absent", Pods: []planning.PodRef{{Name: "joist", UID: "j", Created: planningtest.Now}}}}
	s := &batch.Snapshot
	s.NodePools[0].Status, s.NodeClasses[0].Status.Conditions = karpenter.NodePoolStatus{}, nil
	s.Settings = planning.Settings{
		PlanDRARequests: true,
		Gates:           planning.Gates{ReservedCapacity: true, NodeOverlay: true, CapacityBuffer: true, StaticCapacity: true},
	}
	s.Namespaces = map[string]map[string]string{"default": {"team": "web"}}
	s.NodeOverlays = []karpenter.NodeOverlay{{ObjectMeta: metav1.ObjectMeta{Name: "cheap"}, Spec: karpenter.NodeOverlaySpec{
		Requirements:    []karpenter.OverlayRequirement{{Key: corev1.LabelArchStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"arm64"}}},
		PriceAdjustment: new("-10%"), Capacity: corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}, Weight: new(int32(2)),
	}}}
	s.Buffers = []planning.Buffer{{
		Namespace: "default", Name: "spare", UID: "b", Created: planningtest.Now, Spec: planning.PodSpec{Requests: planningtest.NewRequests("1", "1Gi")},
		Replicas: new(int32(1)), Percentage: new(int32(10)), WorkloadReplicas: 4, Limits: karpenter.Limits{corev1.ResourceCPU: resource.MustParse("8")},
	}, {Namespace: "default", Name: "broken", UID: "c", Problem: "it names neither a podTemplateRef nor a scalableRef"}}
	going := planningtest.NewPods("late", 1, "1", "1Gi")
	going.Pods[0].Terminating = true
	s.Nodes = []planning.Node{{
		Name: "node-1", Allocatable: corev1.ResourceList{planning.AttachLimitResource("ebs.csi.aws.com"): planningtest.NewRequests("25", "0")[corev1.ResourceCPU]},
		Created: planningtest.Now.Add(-time.Hour), Pods: []planning.PodClass{going}, DaemonPods: []planning.PodClass{planningtest.NewPods("logs", 1, "50m", "32Mi")},
	}}
	batch.Pending = append(batch.Pending, planning.NewBufferPods(s.Buffers)...)
	return batch
}
