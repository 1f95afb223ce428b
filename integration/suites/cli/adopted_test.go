package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// adopt gives the cluster the queue and the rules of Karpenter's own template, as with
// adopt=cloudformation. The rules that the stack does not create have names that
// CloudFormation generated.
func (c *doctorAccount) adopt(t *testing.T) {
	t.Helper()
	made := deployed(t, "cloudformation")
	c.createRoles(t, made)
	c.setUpMachine(made)
	own := map[string]bool{}
	for _, r := range made.Rules {
		own[r.Name] = true
	}
	q, _ := c.plan.Queue("interruption")
	// An adopted queue needs a visibility timeout of six times the function's timeout.
	c.broker.Queue(q.Name, memqueue.QueueOptions{Visibility: 6 * 30 * time.Second, MaxReceives: q.MaxReceives, DeadLetter: q.Dead, Retention: q.Retention})
	c.policy(t, q.Name, sendPolicy)
	bus, _ := c.broker.FindBus(topology.DefaultBus)
	adopted := 0
	for _, r := range bus.Rules() {
		if own[r.Name] {
			continue
		}
		adopted++
		foreign := r
		foreign.Name = "Karpenter-prod-" + strings.ReplaceAll(strings.TrimPrefix(r.Name, "prod-joist-"), "-", "") + "Rule-1X2Y3Z4A5B6C"
		r.Targets = nil
		for _, rule := range []memqueue.Rule{r, foreign} {
			if err := bus.PutRule(rule); err != nil {
				t.Fatal(err)
			}
		}
	}
	if adopted != 4 {
		t.Fatalf("adopted %d rules, want the four of Karpenter's template", adopted)
	}
}

// TestDoctorReadsAdoptedRules checks that the operator's permissions cover rules with any
// name, so that doctor finds the missing one.
func TestDoctorReadsAdoptedRules(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.adopt(t)
	if out, text, code := c.doctor(t, "-o", "json"); code != 0 || len(out.Skipped) > 0 || len(out.Findings) > 0 {
		t.Errorf("code %d: %s", code, text)
	}
	bus, _ := c.broker.FindBus(topology.DefaultBus)
	for _, r := range bus.Rules() {
		if strings.HasPrefix(r.Name, "Karpenter-prod-spot") {
			r.Targets = nil
			if err := bus.PutRule(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, text, code := c.doctor(t, "-o", "json"); code != 2 || len(out.Skipped) > 0 || len(out.Findings) != 1 || out.Findings[0].Check != "rule-missing" {
		t.Errorf("code %d: %s", code, text)
	}
}
