package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// gone publishes a fact on the bus and returns its id.
func (w *world) gone(t *testing.T, n int) string {
	t.Helper()
	e, err := event.Maker{Service: "interruption", Cluster: event.Cluster{Name: "prod"}}.New(w.clock.Now(), event.InstanceGone{InstanceID: instance(n), Shown: noon}, nil)
	if err != nil {
		t.Fatal(err)
	}
	bus, _ := w.broker.FindBus(w.plan.Bus)
	if err := queue.Publish(t.Context(), bus, e); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// audit sets the target queue of the audit log's rule; it need not exist.
func (w *world) audit(t *testing.T, to string) {
	t.Helper()
	bus, _ := w.broker.FindBus(w.plan.Bus)
	for _, rule := range bus.Rules() {
		if strings.HasSuffix(rule.Name, "-audit") {
			rule.Targets[0].Queue = to
			if err := bus.PutRule(rule); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// unlogged publishes facts that reach the inbox but not the audit log: one first, and the
// others later, the last one within the current minute. It returns their ids. The archive
// keeps events for the given number of days.
func (w *world) unlogged(t *testing.T, days int32) []string {
	t.Helper()
	_, err := eventbridge.NewFromConfig(w.Config()).CreateArchive(t.Context(), &eventbridge.CreateArchiveInput{
		ArchiveName: &w.plan.Archive, EventSourceArn: aws.String("arn:aws:events:eu-west-1:123456789012:event-bus/" + w.plan.Bus), RetentionDays: &days,
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	w.gone(t, 0) // the log gets this one
	w.clock.Advance(time.Minute)
	w.audit(t, "gone")
	for i := range 3 {
		ids = append(ids, w.gone(t, i+1))
		w.clock.Advance(15 * time.Minute)
	}
	w.clock.Advance(-12 * time.Minute)
	w.audit(t, auditLog)
	inbox, _ := w.own(t, "lifecycle")
	inbox.Purge()
	w.queue(t, auditLog).Purge()
	return ids
}

// logged returns the ids of the facts in the audit log.
func (w *world) logged(t *testing.T) []string {
	t.Helper()
	var out []string
	for body := range bodies(t, w.queue(t, auditLog)) {
		var line struct{ Detail json.RawMessage }
		if err := json.Unmarshal([]byte(body), &line); err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(line.Detail)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.ID)
	}
	slices.Sort(out)
	return out
}

// TestAuditGolden checks the output for facts that are missing from the audit log.
func TestAuditGolden(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.unlogged(t, 30)
	w.golden(t, "audit-queues", "queues")
	w.golden(t, "audit-list", "dead", "list", "--queue", "audit")
	w.golden(t, "audit-replay", "replay", "--queue", "audit")
	w.golden(t, "audit-replay-json", "replay", "--queue", "audit", "-o", "json")
	w.golden(t, "audit-replay-canary", "replay", "--queue", "audit", "--canary", "1", "--yes")
}

// TestAuditReplaysFromArchive checks that a replay writes the missing facts to
// the log and not to the inbox, and removes from the DLQ only messages whose facts are
// certainly in the archive.
func TestAuditReplaysFromArchive(t *testing.T) {
	t.Parallel()
	w := start(t)
	ids := w.unlogged(t, 30)
	w.clock.tick()
	stdout, stderr, code := w.joist(t, "replay", "--queue", "audit", "--rate", "500", "--yes", "-o", "json")
	out := read(t, stdout)
	if code != 0 || out.Method != "archive" || out.Replayed != 2 || len(out.Kept) != 1 {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	want := slices.Clone(ids[:2])
	slices.Sort(want)
	if got := w.logged(t); !slices.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
	inbox, _ := w.own(t, "lifecycle")
	left := bodies(t, w.queue(t, w.plan.AuditDead))
	if n := inbox.Stats().Visible; n != 0 || len(left) != 1 || !strings.Contains(strings.Join(keysOf(left), ""), ids[2]) {
		t.Errorf("%d events arrived in the inbox, and %v remain in the DLQ", n, left)
	}
}

// TestAuditOlderThanTheArchive checks that a message is not removed if the archive no
// longer has its fact, because no other copy exists.
func TestAuditOlderThanTheArchive(t *testing.T) {
	t.Parallel()
	w := start(t)
	ids := w.unlogged(t, 1)
	w.clock.Advance(24*time.Hour - 12*time.Minute)
	w.clock.tick()
	stdout, stderr, code := w.joist(t, "replay", "--queue", "audit", "--rate", "500", "--yes", "-o", "json")
	out := read(t, stdout)
	if code != 0 || out.Replayed != 1 || len(out.Kept) != 2 {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	left := strings.Join(keysOf(bodies(t, w.queue(t, w.plan.AuditDead))), "")
	if got := w.logged(t); !slices.Equal(got, ids[2:]) || !strings.Contains(left, ids[0]) || !strings.Contains(left, ids[1]) {
		t.Errorf("the log has %v, and %s remain in the DLQ", got, left)
	}
}

// TestAuditInterrupted checks that messages stay until the archive's replay is complete.
func TestAuditInterrupted(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.unlogged(t, 30)
	// The clock does not advance, so the replay does not end.
	stdout, stderr, code := w.interrupted(t, ": running", "replay", "--queue", "audit", "--yes")
	if code != cli.ExitInterrupted || !strings.Contains(stdout, "interrupted") || !strings.Contains(stderr, "joist: interrupted: 0 of 2 DLQ messages of audit were written again") || len(bodies(t, w.queue(t, w.plan.AuditDead))) != 3 {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

func keysOf(m map[string]int) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	return out
}
