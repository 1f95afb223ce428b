package lifecycle_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// asksFor makes the pool a static one of so many nodes.
func (s *site) asksFor(n int64) {
	s.t.Helper()
	s.changePool(func(p *karpenter.NodePool) { p.Spec.Replicas = &n })
}

func gateOpen(c *lifecycle.Config) { c.StaticCapacity = true }

// Who asks for fewer nodes gets as many, empty ones first, once and for all.
func TestSurplusGoes(t *testing.T) {
	s := estate(t, 5)
	s.runs("old-0", "web")
	s.runs("old-2", "db")
	s.asksFor(2)
	s.pass(3 * time.Second)
	if s.going() != 0 {
		t.Fatalf("with the gate closed %d claims go", s.going())
	}
	s.configure(gateOpen)
	s.pass(3 * time.Second)
	if s.going() != 3 || s.claim("old-0").DeletionTimestamp != nil || s.claim("old-2").DeletionTimestamp != nil {
		t.Fatalf("%d claims go", s.going())
	}
	s.pass(time.Minute)
	if left := len(s.claims()) - s.going(); left != 2 {
		t.Errorf("%d are left", left)
	}
	if told := s.heard("DisruptionTerminating"); len(told) == 0 {
		t.Error("nobody is told")
	}
}

// What the cache does not show yet is gone all the same: with other pods on the nodes,
// others would be chosen.
func TestSurplusOnAStaleCache(t *testing.T) {
	s := estate(t, 4)
	s.configure(gateOpen)
	s.asksFor(3)
	s.cache.Lag(cluster.NodeClaims, time.Hour)
	for range 4 {
		s.now = s.now.Add(time.Second)
		s.cache.Advance(s.now)
		if err := s.svc.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.claims() {
			if c.DeletionTimestamp != nil {
				s.runs(c.Name, "on-"+c.Name+s.now.Format("-150405"))
			}
		}
	}
	if s.going() != 1 {
		t.Errorf("%d claims go, want 1", s.going())
	}
}

// Whoever dies between two removals is followed by somebody who removes the rest.
func TestSurplusCrash(t *testing.T) {
	for n := 1; n <= 4; n++ {
		s := estate(t, 5)
		s.asksFor(2)
		s.cache.Flush()
		s.start(&mortal{Client: s.As("lifecycle"), left: n, done: n%2 == 0}, gateOpen)
		_ = s.svc.Step(t.Context())
		s.configure(gateOpen)
		s.pass(5 * time.Second)
		if left := len(s.claims()) - s.going(); left != 2 {
			t.Errorf("after a death at write %d, %d are left", n, left)
		}
	}
}
