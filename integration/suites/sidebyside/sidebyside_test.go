package sidebyside

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// seed draws the load.
const seed = 21

// joinAfter is the time from the launch of an instance to its node. The kwok provider accepts whole seconds.
const joinAfter = 2 * time.Second

// length is the part of the day that is replayed, its pace and the scale of the load.
type length struct {
	from, to time.Duration
	pace     float64
	scale    float64
}

// lengths are 75 minutes of the morning with a part of the load, and the whole day (JOIST_SIDEBYSIDE=1).
var (
	short = length{from: 7*time.Hour + 30*time.Minute, to: 8*time.Hour + 45*time.Minute, pace: 60, scale: 0.3}
	whole = length{from: 0, to: 24 * time.Hour, pace: 120, scale: 1}
)

// TestKarpenterAndJoist replays the load for each side, and requires that all pods run at the end. Which side is better is
// reported, not required.
func TestKarpenterAndJoist(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs two control planes, Karpenter and seven services")
	}
	l := short
	if os.Getenv("JOIST_SIDEBYSIDE") != "" {
		l = whole
	}
	report := Comparison{Seed: seed, From: l.from, To: l.to, Pace: l.pace}
	ok := t.Run("Karpenter", func(t *testing.T) { report.Sides = append(report.Sides, measureKarpenter(t, l)) }) &&
		t.Run("Joist", func(t *testing.T) { report.Sides = append(report.Sides, measureJoist(t, l)) })
	if ok {
		writeReport(t, report)
	}
}

func measureKarpenter(t *testing.T, l length) DayMeasurements {
	dir, err := testbed.BuildKwokKarpenter()
	if err != nil {
		t.Fatal(err)
	}
	types := marketTypes(t)
	w := testbed.New(t, testbed.Options{CRDs: copyKwokCRDs(t)})
	price := priceOf(types)
	r := newRecorder(w, "Karpenter with its kwok provider", func() (map[string]NodeLife, error) {
		fleet := map[string]NodeLife{}
		for _, c := range w.Claims() {
			if c.Status.ProviderID == "" || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeLaunched) {
				continue
			}
			perHour, err := price(c.Labels)
			if err != nil {
				return nil, fmt.Errorf("NodeClaim %s: %w", c.Name, err)
			}
			fleet[c.Name] = NodeLife{Type: c.Labels[corev1.LabelInstanceTypeStable], CapacityType: c.Labels[karpenter.CapacityTypeLabelKey], PerHour: perHour}
		}
		return fleet, nil
	})
	w.StartKwokKarpenter(dir, writeKwokTypes(t, types))
	w.Apply("testdata/kwoknodeclass.yaml", map[string]string{"JOIN": joinAfter.String()})
	side := r.measure(l, types, "karpenter.kwok.sh", "KWOKNodeClass")
	keepRecords(t, "karpenter", map[string][]byte{"karpenter.log": []byte(strings.Join(w.StopKarpenter(), "\n"))})
	return side
}

func measureJoist(t *testing.T, l length) DayMeasurements {
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	types := marketTypes(t)
	w := testbed.New(t, testbed.Options{Boot: joinAfter / 4, Join: joinAfter, Machines: 100 * time.Millisecond, EvenSpot: true})
	r := newRecorder(w, "Joist", func() (map[string]NodeLife, error) {
		fleet := map[string]NodeLife{}
		for _, one := range w.RunningInstances() {
			fleet[one.ID] = NodeLife{Type: one.Type, CapacityType: one.CapacityType, PerHour: one.PricePerHour}
		}
		return fleet, nil
	})
	w.StartJoist(dir, false)
	w.Apply("testdata/ec2nodeclass.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": w.AWS.Role})
	side := r.measure(l, types, "karpenter.k8s.aws", "EC2NodeClass")
	keepRecords(t, "joist", readRecords(w))
	w.RunPhase("shutdown", w.Stop)
	return side
}

// readRecords returns the logs of Joist's services, and its documents by key.
func readRecords(w *testbed.TestBed) map[string][]byte {
	w.Helper()
	records := map[string][]byte{}
	for _, path := range w.ServiceLogs() {
		text, err := os.ReadFile(path)
		w.RequireNoError(err)
		records[filepath.Base(path)] = text
	}
	for _, key := range w.Blobs.ListKeys() {
		text, err := w.Blobs.Get(w.Context(), key)
		w.RequireNoError(err)
		records[key] = text
	}
	return records
}

// measure fills the cluster with the first step's pods, and replays the load.
func (r *recorder) measure(l length, types []catalog.InstanceType, group, kind string) DayMeasurements {
	r.Helper()
	day, err := NewDay(seed, l.scale)
	r.RequireNoError(err)
	steps := day.Steps(seed, l.from, l.to)
	last := steps[len(steps)-1]
	limit, filled := 5*time.Minute, time.Time{}
	r.Apply("testdata/nodepool.yaml", poolVariables(group, kind, types))
	r.RunPhase("the NodePool is ready", func() { r.WaitUntil(limit, "the NodePool to be ready", r.isPoolReady) })
	r.RunPhase("the first pods run", func() {
		filled = time.Now()
		for _, a := range day.Apps {
			r.deploy(a, steps[0].Replicas[a.Name])
		}
		r.WaitUntil(limit, "the first pods to run", func() bool { return r.settled(sum(steps[0].Replicas)) })
	})
	fill := time.Since(filled)
	began := time.Now()
	wall := func(at time.Duration) time.Duration { return time.Duration(float64(at-l.from) / l.pace) }
	r.begin(fill, func() time.Duration { return l.from + time.Duration(float64(time.Since(began))*l.pace) })
	r.RunPhase("the day", func() { r.replay(steps, began, wall, l.to) })
	side := r.end()
	r.RunPhase("the last pods run", func() {
		r.WaitUntil(limit, "the last pods to run", func() bool { return r.settled(sum(last.Replicas)) })
	})
	if len(side.Starts) == 0 || side.Dollars() <= 0 || side.CPU() <= 0 {
		r.Errorf("%d pods started, $%.2f, %.1f s of CPU", len(side.Starts), side.Dollars(), side.CPU())
	}
	return side
}

func (r *recorder) isPoolReady() bool {
	for _, pool := range cluster.ListCached[*karpenter.NodePool](r.Cache, cluster.NodePools) {
		return pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
	}
	return false
}

func sum(replicas map[string]int) int {
	n := 0
	for _, some := range replicas {
		n += some
	}
	return n
}

// keepRecords writes what a side has recorded, by file, so that its decisions can be explained after the run.
func keepRecords(t *testing.T, side string, files map[string][]byte) {
	t.Helper()
	into := os.Getenv("JOIST_SIDEBYSIDE_INTO")
	if into == "" {
		return
	}
	for name, text := range files {
		path := filepath.Join(into, side, name)
		err := os.MkdirAll(filepath.Dir(path), 0o750)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeReport(t *testing.T, report Comparison) {
	t.Helper()
	t.Logf("\n%s", report.Table())
	drawing, err := SVG(report)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	into := cmp.Or(os.Getenv("JOIST_SIDEBYSIDE_INTO"), t.TempDir())
	for name, text := range map[string][]byte{"sidebyside.svg": drawing, "sidebyside.json": figures, "sidebyside.md": []byte(report.Table())} {
		if err := os.WriteFile(filepath.Join(into, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
