package scheduling_test

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

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
	"github.com/joist-autoscaler/joist/shared/planning/schedulingtest"
)

var update = flag.Bool("update", false, "write the newest golden document")

// newest has every field that has been added since the first documents. A field
// that is added from now on goes into another document: these are never edited.
const newest = "batch-2.json"

// Documents that were written once stay readable, and a plan that was made of
// them can be made again: whatever is in them comes out as it went in.
func TestDocumentsKeepTheirBytes(t *testing.T) {
	files, err := filepath.Glob("testdata/documents/batch-*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var batch scheduling.Batch
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
		t.Errorf("a document changed its form:\n%s", diff)
	}
}

func written(t *testing.T, batch scheduling.Batch) string {
	t.Helper()
	text, err := json.MarshalIndent(batch, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// sample has what batch-1.json lacks.
func sample() scheduling.Batch {
	own := schedulingtest.Pods("db", 2, "1", "1Gi", func(s *scheduling.PodSpec) {
		s.Volumes = []scheduling.Volume{{Driver: "ebs.csi.aws.com"}, {Claim: "shared", Driver: "efs.csi.aws.com"}}
	})
	batch := schedulingtest.Seed(own)
	batch.Ignored = []scheduling.Ignored{{Namespace: "kube-system", Reason: "it requires karpenter.sh/nodepool to be absent", Pods: []scheduling.PodRef{{Name: "joist", UID: "j", Created: schedulingtest.Now}}}}
	s := &batch.Snapshot
	s.NodePools[0].Status, s.NodeClasses[0].Status.Conditions = karpenter.NodePoolStatus{}, nil
	s.Settings = scheduling.Settings{
		PlanDRARequests: true,
		Gates:           scheduling.Gates{ReservedCapacity: true, NodeOverlay: true, CapacityBuffer: true, StaticCapacity: true},
	}
	s.Namespaces = map[string]map[string]string{"default": {"team": "web"}}
	s.NodeOverlays = []karpenter.NodeOverlay{overlay("cheap", wants(arch, in, "arm64"), adjusts("-10%"), adds("example.com/fpga", "1"), heavy(2))}
	s.Buffers = []scheduling.Buffer{{
		Namespace: "default", Name: "spare", UID: "b", Created: schedulingtest.Now, Spec: scheduling.PodSpec{Requests: schedulingtest.Requests("1", "1Gi")},
		Replicas: new(int32(1)), Percentage: new(int32(10)), Scale: 4, Limits: limits("cpu", "8"),
	}, {Namespace: "default", Name: "broken", UID: "c", Problem: "it names neither a podTemplateRef nor a scalableRef"}}
	going := schedulingtest.Pods("late", 1, "1", "1Gi")
	going.Pods[0].Going = true
	s.Nodes = []scheduling.Node{{
		Name: "node-1", Allocatable: corev1.ResourceList{scheduling.AttachLimit("ebs.csi.aws.com"): schedulingtest.Requests("25", "0")[corev1.ResourceCPU]},
		Created: schedulingtest.Now.Add(-time.Hour), Pods: []scheduling.PodClass{going}, DaemonPods: []scheduling.PodClass{schedulingtest.Pods("logs", 1, "50m", "32Mi")},
	}}
	batch.Pending = append(batch.Pending, scheduling.BufferPods(s.Buffers)...)
	return batch
}
