package lifecycle_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A warning about the whole launch request is published on the node class, once in ten minutes.
// It does not affect the rest of the plan.
func TestPlanWarningsOnClass(t *testing.T) {
	s := newTestCluster(t)
	s.addNodeClass("")
	tooLong := planning.Warning{NodePool: "default", NodeClass: "default", Rule: launchspec.WarnUnwritable, Message: "the user data has 20000 bytes, the limit of EC2 is 16384 (try: shorten it)"}
	plan := func() []event.Envelope {
		held := s.startBatch()
		s.handleMessage(s.planMadeMessage(held, planning.Plan{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Warnings: []planning.Warning{
			tooLong,
			{NodePool: "default", NodeClass: "default", Rule: launchspec.WarnUserData, Message: "nearly"},
			{NodePool: "default", NodeClass: "gone", Rule: launchspec.WarnTags, Message: "unknown class"},
		}, Intents: []planning.PlannedIntent{s.planIntent(held, "intent"+strconv.FormatUint(held.Seq, 10), 1)}}), "")
		return s.takeSent()
	}
	reported := func() (out []string) {
		for _, e := range s.Events() {
			if e.About.GetName() == "default" && e.Type == "Warning" {
				out = append(out, e.Reason+" "+e.Message)
			}
		}
		return out
	}
	want := []string{"LaunchNotPossible NodePool default: " + tooLong.Message, "LaunchWarning NodePool default: nearly"}
	for range 2 {
		if sent := plan(); len(sent) != 1 || sent[0].Type != event.LaunchRequestedType {
			t.Errorf("sent %v", typesAndSubjects(sent))
		}
		if got := reported(); !slices.Equal(got, want) {
			t.Fatalf("got Events %q", got)
		}
	}
	s.now = s.now.Add(10 * time.Minute)
	plan()
	if got := reported(); len(got) != 4 {
		t.Errorf("got Events %q", got)
	}
}

// A plan publishes Events on pods after its launches are requested, and on a NodePool
// without a compatible instance type.
func TestPlanEvents(t *testing.T) {
	s := newTestCluster(t)
	s.addNodeClass("")
	pool, _ := s.cache.Get(cluster.NodePools, cluster.Key{Name: "default"})
	if pool == nil {
		s.SeedObjects(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}})
		s.cache.DeliverAll()
	}
	held := s.startBatch()
	intent := s.planIntent(held, "intent", 1)
	web, big := planning.PodRef{Name: "web", UID: "web"}, planning.PodRef{Name: "big", UID: "big"}
	s.handleMessage(s.planMadeMessage(held, planning.Plan{
		Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: []planning.PlannedIntent{intent},
		Nominations: []planning.Nomination{{Namespace: "shop", Pod: web, Claim: intent.Claims[0].Object.Name}},
		Unplaced: []planning.UnplacedPods{{Namespace: "shop", Pods: []planning.PodRef{big}, Rejections: []planning.Rejection{
			{NodePool: "default", Rule: planning.RuleNoOffering, Detail: "no instance type matches it", LacksInstanceTypes: true},
		}}},
	}), "")
	if sent := s.takeSent(); len(sent) != 1 {
		t.Errorf("sent %v", typesAndSubjects(sent))
	}
	var got []string
	for _, e := range s.Events() {
		if slices.Contains([]string{"Nominated", "FailedScheduling", "NoCompatibleInstanceTypes"}, e.Reason) {
			got = append(got, e.Type+" "+e.Reason+" "+cluster.KeyOf(e.About).String()+": "+e.Message)
		}
	}
	want := []string{
		"Warning NoCompatibleInstanceTypes default: NodePool requirements filtered out all compatible available instance types: no instance type matches it",
		"Warning FailedScheduling shop/big: Failed to schedule pod, default: no instance type matches it",
		"Normal Nominated shop/web: Pod should schedule on: nodeclaim/intent-0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got Events %q", got)
	}
}
