package disruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// graceful returns a NodePool that replaces its nodes before they expire, and does nothing else.
func graceful(edits ...func(*karpenter.NodePool)) karpenter.NodePool {
	return fixture.Pool(append(edits, never, func(p *karpenter.NodePool) {
		p.Annotations = map[string]string{policy.Expiration: "graceful", policy.ExpirationWindow: "4h"}
	})...)
}

// ends makes a node of thirty days expire after this time.
func ends(in time.Duration) func(*node) {
	return func(n *node) {
		n.ExpiresAt = fixture.Taken.Add(in)
		n.Created = n.ExpiresAt.Add(-720 * time.Hour)
	}
}

func forceful(p *karpenter.NodePool) { delete(p.Annotations, policy.Expiration) }

func TestExpiration(t *testing.T) {
	n := fixture.Node
	late := ends(90 * time.Minute) // In the second half of the window all nodes are due.
	blocked := func(n *node) { n.Pods[0].Pods[0].BlockingPDB = "default/web" }
	bounded := func(n *node) { n.HasTerminationGracePeriod = true }
	reason := func(nodes string, reason karpenter.DisruptionReason) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) {
			p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: nodes, Reasons: []karpenter.DisruptionReason{reason}}}
		}
	}
	annotated := func(name, value string) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) { p.Annotations[name] = value }
	}
	for _, tt := range []struct {
		name  string
		pool  karpenter.NodePool
		edit  func(*karpenter.NodePool)
		nodes []node
		want  []string
	}{
		{"disabled by default", graceful(), forceful, []node{n("a", "t4g.medium", with(3), late)}, nil},
		{"replaced before its expiry", graceful(), nil, []node{n("a", "t4g.medium", with(3), late)}, []string{"Expiration -a +t4g.medium"}},
		{"an empty node is removed", graceful(), nil, []node{n("a", "t4g.medium", late)}, []string{"Expiration -a"}},
		{"before its window", graceful(), nil, []node{n("a", "t4g.medium", with(3), ends(4*time.Hour+1))}, nil},
		{"no expiry", graceful(), nil, []node{n("a", "t4g.medium", with(3))}, nil},
		{"the earliest expiry first", graceful(fixture.Budgets("1")), nil, []node{n("a", "t4g.medium", with(3), late), n("b", "t4g.medium", with(3), ends(time.Hour))},
			[]string{"Expiration -b +t4g.medium"}},
		{"budgets for Drifted", graceful(reason("0", karpenter.DisruptionReasonDrifted)), nil, []node{n("a", "t4g.medium", with(3), late)}, nil},
		{"budgets for other reasons do not apply", graceful(reason("0", karpenter.DisruptionReasonUnderutilized)), nil, []node{n("a", "t4g.medium", with(3), late)},
			[]string{"Expiration -a +t4g.medium"}},
		{"drift has precedence", graceful(fixture.Budgets("1")), nil, []node{n("a", "t4g.medium", with(3), late), n("b", "t4g.medium", with(3), drift(time.Hour))},
			[]string{"Drift -b +t4g.medium"}},
		{"a PodDisruptionBudget", graceful(), nil, []node{n("a", "t4g.medium", with(3), late, blocked)}, nil},
		{"do-not-disrupt", graceful(), nil, []node{n("a", "t4g.medium", with(3), late, protected)}, nil},
		{"protected pods with a termination grace period", graceful(), nil, []node{n("a", "t4g.medium", with(3), late, blocked, bounded), n("b", "t4g.medium", with(3), late, protected, bounded)}, nil},
		{"a node of a static pool is replaced, with or without pods", graceful(static(2)), nil, []node{n("a", "t4g.medium", with(3)), n("b", "t4g.medium", with(1), late)},
			[]string{"Expiration -b +t4g.medium"}},
		{"an expiration annotation that cannot be read", graceful(), annotated(policy.ExpirationWindow, "1d"), []node{n("a", "t4g.medium", with(3), late)}, nil},
		{"another annotation that cannot be read", graceful(), annotated(policy.MinSaving, "lots"), []node{n("a", "t4g.medium", with(3), late)}, []string{"Expiration -a +t4g.medium"}},
		{"a misspelt annotation", graceful(), annotated("joist.sh/expirations", "none"), []node{n("a", "t4g.medium", with(3), late)}, nil},
		{"an unknown time zone", graceful(fixture.Budgets("5")), annotated(policy.BudgetTimeZone, "Mars/Olympus"), []node{n("a", "t4g.medium", with(3), late)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.edit != nil {
				tt.edit(&tt.pool)
			}
			s := fixture.Snapshot(tt.pool, tt.nodes...)
			s.Settings.Gates.StaticCapacity = true
			found := Evaluate(s, fixture.Stock(s), Options{})
			if diff := cmp.Diff(tt.want, all(s, found)); diff != "" {
				t.Errorf("commands (-want +got):\n%s\nkept %+v", diff, found.Kept)
			}
			for _, c := range found.Commands {
				if c.Reason != karpenter.DisruptionReasonDrifted {
					t.Errorf("budgets count it for the reason %s", c.Reason)
				}
			}
		})
	}
}

// Each node has its own replacement time in the first half of the window, which every evaluation
// computes alike. The times are spread evenly.
func TestReplacementTimes(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		life, window, within time.Duration
	}{
		{"a tenth of its lifetime", 100 * time.Hour, 0, 10 * time.Hour},
		{"at most a day", 720 * time.Hour, 0, 24 * time.Hour},
		{"the configured window", 720 * time.Hour, 48 * time.Hour, 48 * time.Hour},
		{"at most its lifetime", time.Hour, 48 * time.Hour, time.Hour},
		{"no lifetime", 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var quarters [4]int
			const count = 1000
			for i := range count {
				n := fixture.Node(fmt.Sprint("n", i), "t4g.medium", func(n *node) { n.Created, n.ExpiresAt = fixture.Taken, fixture.Taken.Add(tt.life) })
				e := policy.ExpirationPolicy{Graceful: true, Window: tt.window}
				from := replacementTime(&n, e)
				since := from.Sub(n.ExpiresAt.Add(-tt.within))
				if since < 0 || since > tt.within/2 || !from.Equal(replacementTime(&n, e)) {
					t.Fatalf("%s after the start of a window of %s", since, tt.within)
				}
				if tt.within > 0 {
					quarters[min(3, int(since*8/tt.within))]++
				}
				if !replacementTime(&n, policy.ExpirationPolicy{Window: tt.window}).IsZero() {
					t.Fatal("due although its pool does not request it")
				}
			}
			if tt.within > 0 && slices.Min(quarters[:]) < count/5 {
				t.Errorf("distribution over the quarters: %v", quarters)
			}
		})
	}
}

// NextChange is the time at which a node becomes due for replacement.
func TestExpirationSetsNextChange(t *testing.T) {
	stock := fixture.Stock(fixture.Snapshot(graceful()))
	rapid.Check(t, func(t *rapid.T) {
		s := fixture.Snapshot(graceful(), fixture.Node("a", "t4g.medium", with(3), ends(time.Duration(rapid.IntRange(242, 900).Draw(t, "minutes"))*time.Minute)))
		found := Evaluate(s, stock, Options{})
		if len(found.Commands) > 0 || found.NextChange.IsZero() {
			t.Fatalf("%+v", found)
		}
		for _, at := range []time.Duration{-1, 0} {
			s.TakenAt = found.NextChange.Add(at)
			if got := len(Evaluate(s, stock, Options{}).Commands); got != int(at)+1 {
				t.Fatalf("got %d commands at %s, want one more after %s", got, at, found.NextChange)
			}
		}
	})
	body := func(at time.Duration) event.ClusterSnapshot {
		return event.ClusterSnapshot{Taken: start.Add(at), Snapshot: event.Ref{Digest: "s"}}
	}
	for _, tt := range []struct {
		name  string
		next  time.Time
		after time.Duration
		want  bool
	}{
		{"no replacement is due", time.Time{}, time.Minute, true},
		{"before the replacement is due", start.Add(time.Minute), time.Minute - 1, true},
		{"now", start.Add(time.Minute), time.Minute, false},
		{"due at any time", start, time.Nanosecond, false},
	} {
		r := &LastIdle{}
		r.recordIdle(body(0), Findings{NextChange: tt.next}, nil)
		if got := r.isUnchanged(body(tt.after)); got != tt.want {
			t.Errorf("%s: got unchanged %v", tt.name, got)
		}
	}
	// An exhausted budget may allow a disruption at any time, regardless of other objections to the
	// node.
	s := fixture.Snapshot(graceful(fixture.Budgets("0")), fixture.Node("a", "t4g.medium", with(3), ends(time.Hour)))
	if found := Evaluate(s, stock, Options{}); !found.NextChange.Equal(s.TakenAt) {
		t.Errorf("next change at %s, snapshot taken at %s, kept %+v", found.NextChange, s.TakenAt, found.Kept)
	}
}

// agingCluster is a cluster whose nodes age. Lifecycle's actions take effect at once.
type agingCluster struct {
	planning.Snapshot
	lifetime time.Duration
	until    map[string]time.Time
	forced   []string
	most     int
}

// step runs disruption and carries out its commands as lifecycle does.
func (o *agingCluster) step(stock instancetypes.InstanceTypes) {
	found := Evaluate(o.Snapshot, stock, Options{})
	at := map[string]*node{}
	for i := range o.Nodes {
		at[o.Nodes[i].Claim] = &o.Nodes[i]
	}
	for _, d := range decidePhases(&o.Snapshot, found.Commands) {
		for _, claim := range d.claims {
			n := at[claim]
			switch d.phase {
			case event.Proposed:
				n.Proposal = &planning.Proposal{ID: d.Proposal, Reason: string(d.Reason), Method: string(d.Method), ProposedAt: o.TakenAt}
			case event.Dropped:
				n.Proposal = nil
			case event.Confirmed:
				n.Proposal.ConfirmedAt = o.TakenAt
				o.until[claim] = o.TakenAt.Add(5 * time.Minute)
			}
		}
	}
	going := 0
	for i := range o.Nodes {
		n := &o.Nodes[i]
		end, goes := o.until[n.Claim]
		switch {
		case !o.TakenAt.Before(n.ExpiresAt):
			o.forced = append(o.forced, n.Claim)
			o.renew(n)
		case goes && !o.TakenAt.Before(end):
			o.renew(n)
		case goes:
			going++
		}
	}
	o.most = max(o.most, going)
}

// renew replaces a node with a new one.
func (o *agingCluster) renew(n *node) {
	delete(o.until, n.Claim)
	n.Name += "'"
	n.Claim, n.ClaimUID, n.Proposal = n.Name, "uid-"+n.Name, nil
	n.Created, n.InitializedAt, n.ExpiresAt = o.TakenAt, o.TakenAt, o.TakenAt.Add(o.lifetime)
}

// A hundred nodes of the same age expire together. At most ten are replaced at once, all are
// replaced before they expire, and only nodes that a PodDisruptionBudget blocked until then are
// expired forcibly.
func TestHundredNodesOfSameAge(t *testing.T) {
	for _, tt := range []struct {
		name, window     string
		life, last, step time.Duration
	}{
		{"lifetime of a month, default window", "", 720 * time.Hour, 24 * time.Hour, 5 * time.Minute},
		{"lifetime of a day, window of two hours", "2h", 24 * time.Hour, 2 * time.Hour, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := graceful(fixture.Budgets("10%"))
			pool.Annotations[policy.ExpirationWindow] = tt.window
			if tt.window == "" {
				delete(pool.Annotations, policy.ExpirationWindow)
			}
			o := &agingCluster{lifetime: tt.life, until: map[string]time.Time{}, Snapshot: fixture.Snapshot(pool)}
			end := fixture.Taken.Add(tt.life)
			for i := range 100 {
				o.Nodes = append(o.Nodes, fixture.Node(fmt.Sprint("n", i), "t4g.medium", with(3), func(n *node) {
					n.Created, n.ExpiresAt = fixture.Taken, end
					if i%50 == 7 {
						n.Pods[0].Pods[0].BlockingPDB = "default/web"
					}
				}))
			}
			stock := fixture.Stock(o.Snapshot)
			for o.TakenAt = end.Add(-tt.last); !o.TakenAt.After(end); o.TakenAt = o.TakenAt.Add(tt.step) {
				o.step(stock)
				if o.most > 10 {
					t.Fatalf("%d nodes are replaced at once %s before their expiry", o.most, end.Sub(o.TakenAt))
				}
			}
			if diff := cmp.Diff([]string{"n7", "n57"}, o.forced); diff != "" {
				t.Errorf("by force (-want +got):\n%s", diff)
			}
			for _, n := range o.Nodes {
				if !n.ExpiresAt.After(end) {
					t.Errorf("%s still exists", n.Name)
				}
			}
			t.Logf("at most %d at once", o.most)
		})
	}
}

// A node that may be replaced because it expires is eligible for the reason Drifted, and counts
// towards those budgets. A node that has also drifted counts once.
func TestExpiringNodesAreEligible(t *testing.T) {
	late := ends(90 * time.Minute)
	pool := graceful(fixture.Budgets("0"))
	s := fixture.Snapshot(pool, fixture.Node("late", "t4g.medium", with(3), late), fixture.Node("both", "t4g.medium", with(3), late, drift(time.Minute)),
		fixture.Node("early", "t4g.medium", with(3), ends(99*time.Hour)))
	if got := Evaluate(s, fixture.Stock(s), Options{}).Metrics.Eligible[karpenter.DisruptionReasonDrifted]; got != 2 {
		t.Errorf("%d nodes are eligible for the reason Drifted, want 2", got)
	}
}

// An invalid time zone is reported once, although it also concerns budgets.
func TestTimeZoneErrorIsReportedOnce(t *testing.T) {
	pool := graceful(fixture.Budgets("5"))
	pool.Annotations[policy.BudgetTimeZone] = "Mars/Olympus"
	s := fixture.Snapshot(pool, fixture.Node("a", "t4g.medium", with(3), ends(90*time.Minute)))
	if got := Evaluate(s, fixture.Stock(s), Options{}).Problems; len(got) != 1 {
		t.Errorf("%d problems: %v", len(got), got)
	}
}
