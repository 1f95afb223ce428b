package lifecycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// noticeMessage returns a notice of now about the instance.
func (s *testCluster) noticeMessage(kind event.NoticeKind, instance, detail string) event.Envelope {
	b := event.NodeNoticed{Kind: kind, InstanceID: instance, Noticed: s.now, Detail: detail}
	if kind == event.SpotInterruption || kind == event.ReservationInterruption {
		b.Deadline = s.now.Add(2 * time.Minute)
	}
	return s.newMessage(b)
}

// eventTexts returns the Events since the nth, as "type reason on kind: message".
func (s *testCluster) eventTexts(from int) []string {
	var out []string
	for _, e := range s.Events()[from:] {
		out = append(out, fmt.Sprintf("%s %s on %s: %s", e.Type, e.Reason, e.Kind.Kind, e.Message))
	}
	return out
}

func TestNoticeEvents(t *testing.T) {
	on := func(typ, reason, message string) []string {
		return []string{typ + " " + reason + " on NodeClaim: " + message, typ + " " + reason + " on Node: " + message}
	}
	end := []string{
		"Warning TerminatingOnInterruption on NodeClaim: Interruption triggered termination for the NodeClaim",
		"Warning TerminatingOnInterruption on Node: Interruption triggered termination for the Node",
	}
	unhealthy := on("Warning", "InstanceUnhealthy", "An unhealthy warning was triggered for the instance")
	for _, c := range []struct {
		kind   event.NoticeKind
		detail string
		want   []string
	}{
		{event.SpotInterruption, "terminate", append(on("Warning", "SpotInterrupted", "Spot interruption warning was triggered"), end...)},
		{event.RebalanceRecommendation, "", on("Normal", "SpotRebalanceRecommendation", "Spot rebalance recommendation was triggered")},
		{event.ReservationInterruption, "", append(on("Warning", "CapacityReservationInstanceInterrupted", "Capacity Reservation interruption warning was triggered"), end...)},
		{event.StateChange, "stopping", append(on("Warning", "InstanceStopping", "Instance is stopping"), end...)},
		{event.StateChange, "stopped", append(on("Warning", "InstanceStopping", "Instance is stopping"), end...)},
		{event.StateChange, "shutting-down", append(on("Warning", "InstanceTerminating", "Instance is terminating"), end...)},
		{event.ScheduledChange, "instance-stop", append(slices.Clone(unhealthy), end...)},
		{event.StatusImpaired, "impaired", append(slices.Clone(unhealthy), end...)},
		{"of-tomorrow", "", append(slices.Clone(unhealthy), end...)},
	} {
		t.Run(string(c.kind)+" "+c.detail, func(t *testing.T) {
			s := newTestCluster(t)
			s.runNode()
			before := len(s.Events())
			s.handleMessage(s.noticeMessage(c.kind, "i-1", c.detail), "")
			if diff := cmp.Diff(c.want, s.eventTexts(before)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The same notice is reported again only after two minutes.
func TestNoticeEventsAreDeduplicated(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	before := len(s.Events())
	for range 4 {
		s.handleMessage(s.noticeMessage(event.RebalanceRecommendation, "i-1", ""), "")
		s.now = s.now.Add(59 * time.Second)
	}
	if got := s.eventTexts(before); len(got) != 4 {
		t.Errorf("reported again within two minutes: %q", got)
	}
}

// Budgets do not delay interruptions.
func TestBudgetsDoNotDelayNotices(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.updatePool(func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}}
	})
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	if s.getClaim("one-0").DeletionTimestamp == nil {
		t.Error("the claim was not deleted")
	}
}

// A notice with a deadline writes it and the trace on the claim. One without writes nothing while the claim waits for the
// end of its instance.
func TestNoticeAnnotations(t *testing.T) {
	for _, c := range []struct {
		kind   event.NoticeKind
		detail string
		writes bool
	}{
		{event.SpotInterruption, "terminate", true},
		{event.ReservationInterruption, "", true},
		{event.StateChange, "shutting-down", false},
		{event.ScheduledChange, "instance-stop", false},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			s := newTestCluster(t)
			s.runNode()
			before := s.getClaim("one-0").Annotations
			notice := s.noticeMessage(c.kind, "i-1", c.detail)
			notice.Traceparent = notice.RootTraceparent()
			s.handleMessage(notice, "")
			claim := s.getClaim("one-0")
			if claim.DeletionTimestamp == nil {
				t.Error("the claim was not deleted")
			}
			if wrote := !maps.Equal(before, claim.Annotations); wrote != c.writes {
				t.Errorf("wrote the annotations %t, want %t: %v, before %v", wrote, c.writes, claim.Annotations, before)
			}
		})
	}
}

// The terminationGracePeriod of a NodeClaim ends its drain also if AWS's deadline is later.
func TestGracePeriodEndsBeforeNotice(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.setClaim("one-0", func(c *karpenter.NodeClaim) {
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 30 * time.Second}
	})
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	want := s.getClaim("one-0").DeletionTimestamp.Add(30 * time.Second).UTC().Format(time.RFC3339)
	s.advance(5 * time.Second)
	if got := s.terminationDeadline(); got != want {
		t.Errorf("the drain ends at %s, want %s", got, want)
	}
}

// A notice may arrive before the launch result. It applies to a claim that is bound within two
// minutes.
func TestNoticeBeforeBinding(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	e := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
	s.handleMessage(e, fault.Retry)
	s.handleMessage(s.noticeMessage(event.StateChange, "i-1", "terminated"), fault.Foreign)
	s.now = s.now.Add(time.Minute)
	s.handleMessage(e, fault.Retry)
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	s.handleMessage(e, "")
	if c := s.getClaim("one-0"); c.DeletionTimestamp == nil || s.terminationDeadline() == "" {
		t.Errorf("the notice was lost: %+v", c.ObjectMeta)
	}
	late := s.noticeMessage(event.SpotInterruption, "i-2", "terminate")
	s.now = s.now.Add(2 * time.Minute)
	s.handleMessage(late, fault.Foreign)
}

// readCounter counts the reads of claims.
type readCounter struct {
	cluster.Client
	gets, lists int
}

func (r *readCounter) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	if kind == cluster.NodeClaims {
		r.gets++
	}
	return r.Client.Get(ctx, kind, key)
}

func (r *readCounter) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	if kind == cluster.NodeClaims {
		r.lists++
	}
	return r.Client.List(ctx, kind, namespace)
}

// Many notices must not cause many lists.
func TestNoticeReadsOneClaim(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	client := &readCounter{Client: s.ClientFor("lifecycle")}
	s.startService(client)
	s.cache.DeliverAll()
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	if client.gets != 1 || client.lists != 0 {
		t.Errorf("read %d claims and %d lists, want 1 and 0", client.gets, client.lists)
	}
}

// The taint and the label are written with the notice and do not wait for the next reconcile.
// Losing that swap is harmless.
func TestNoticeTaintsNodeAtOnce(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	e := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
	s.handleMessage(e, "")
	node := s.getNodeOf()
	if !slices.Contains(node.Spec.Taints, karpenter.DisruptedTaint()) || node.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] != "karpenter" {
		t.Errorf("taints %v, labels %v", node.Spec.Taints, node.Labels)
	}
	for _, kind := range []fault.Kind{fault.Conflict, fault.Missing} {
		s := newTestCluster(t)
		s.runNode()
		s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.Nodes, As: kind, Times: 1})
		s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
		s.advance(time.Second)
		if !slices.Contains(s.getNodeOf().Spec.Taints, karpenter.DisruptedTaint()) {
			t.Errorf("after a lost swap (%s) the node is not tainted", kind)
		}
	}
}

// Only the interrupted spot offering or reservation is recorded as unavailable.
func TestInterruptedReservationIsUnavailable(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.handleMessage(s.noticeMessage(event.ReservationInterruption, "i-1", ""), "")
	if got := s.unavailableOfferings(); len(got) != 0 {
		t.Fatalf("an instance without a reservation made an offering unavailable: %v", got)
	}
	s = newTestCluster(t)
	s.runNode()
	c := s.getClaim("one-0")
	c.Labels[karpenter.LabelCapacityReservationID] = "cr-1"
	c.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeReserved
	if _, err := s.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.handleMessage(s.noticeMessage(event.ReservationInterruption, "i-1", ""), "")
	got := s.unavailableOfferings()
	if len(got) != 1 || got[0].Reservation != "cr-1" || got[0].CapacityType != karpenter.CapacityTypeReserved || !got[0].Until.Equal(s.now.Add(3*time.Minute)) {
		t.Errorf("got unavailable offerings %+v", got)
	}
	if s.getClaim("one-0").DeletionTimestamp == nil || s.terminationDeadline() == "" {
		t.Error("the node is not drained")
	}
}

// Many notices about one offering write it once per interval.
func TestUnavailableUntilLastNotice(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	writes := func() int {
		n := 0
		for _, e := range s.Effects() {
			if _, ok := e.After.(*corev1.ConfigMap); ok && e.Key.Name == "joist-unavailable" {
				n++
			}
		}
		return n
	}
	for range 5 {
		s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	}
	first := writes()
	s.now = s.now.Add(time.Minute)
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	if got := s.unavailableOfferings(); first != 1 || writes() != 2 || len(got) != 1 || !got[0].Until.Equal(s.now.Add(3*time.Minute)) {
		t.Errorf("%d writes, then %d in total: %v", first, writes(), got)
	}
}

func TestRebalancePolicies(t *testing.T) {
	for policy, want := range map[lifecycle.RebalancePolicy]struct{ going, cordoned, tainted bool }{
		"": {}, lifecycle.RebalanceIgnore: {}, lifecycle.RebalanceCordon: {cordoned: true}, lifecycle.RebalanceReplace: {going: true, tainted: true},
	} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			s := newTestCluster(t)
			s.configureService(func(c *lifecycle.Config) { c.Rebalance = policy })
			s.runNode()
			s.addPodTo("web")
			for range 2 {
				s.handleMessage(s.noticeMessage(event.RebalanceRecommendation, "i-1", ""), "")
				s.cache.DeliverAll()
			}
			node := s.getNodeOf()
			if going := s.getClaim("one-0").DeletionTimestamp != nil; going != want.going || s.terminationDeadline() != "" {
				t.Errorf("got deleted %t, deadline %q", going, s.terminationDeadline())
			}
			if node.Spec.Unschedulable != want.cordoned || slices.Contains(node.Spec.Taints, karpenter.DisruptedTaint()) != want.tainted {
				t.Errorf("got unschedulable %t, taints %v", node.Spec.Unschedulable, node.Spec.Taints)
			}
			if !slices.ContainsFunc(s.eventTexts(0), func(e string) bool { return strings.HasPrefix(e, "Normal SpotRebalanceRecommendation on Node:") }) {
				t.Error("no Event reports the recommendation")
			}
			// The interruption warning still follows and has a deadline.
			s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
			if s.getClaim("one-0").DeletionTimestamp == nil || s.terminationDeadline() == "" {
				t.Error("the interruption warning was ignored")
			}
		})
	}
}
