package queuetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func deliversUntilDeleted(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	for range 2 {
		m := one(t, s.Queue, long)
		hide(t, s.Queue, m.Receipt, 0)
	}
	remove(t, s.Queue, one(t, s.Queue, short).Receipt)
	s.Advance(short + time.Second)
	nothing(t, s.Queue)
}

func hidesReceived(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	one(t, s.Queue, long)
	nothing(t, s.Queue)
}

func deliversAgain(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	first := one(t, s.Queue, short)
	nothing(t, s.Queue)
	s.Advance(short + time.Second)
	second := one(t, s.Queue, long)
	if first.ID != second.ID || string(second.Body) != "a" {
		t.Errorf("delivered %+v, then %+v", first, second)
	}
}

func hideExtends(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	m := one(t, s.Queue, short)
	hide(t, s.Queue, m.Receipt, 2*short)
	s.Advance(short + time.Second)
	nothing(t, s.Queue)
	s.Advance(short)
	one(t, s.Queue, long)
}

func hideZeroReturns(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	hide(t, s.Queue, one(t, s.Queue, long).Receipt, 0)
	one(t, s.Queue, long)
}

// hideRefusesStale accepts success for a receipt whose visibility timeout has ended, as SQS was observed to return;
// but the message must stay visible.
func hideRefusesStale(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	stale := one(t, s.Queue, short).Receipt
	s.Advance(short + time.Second)
	if err := s.Queue.Hide(t.Context(), stale, long); s.Strict || err != nil {
		wantKind(t, err, fault.Missing)
	}
	fresh := one(t, s.Queue, long).Receipt
	if s.Strict {
		wantKind(t, s.Queue.Hide(t.Context(), stale, long), fault.Missing)
	}
	hide(t, s.Queue, fresh, long)
}

func hideRefusesDeleted(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	m := one(t, s.Queue, long)
	remove(t, s.Queue, m.Receipt)
	wantKind(t, s.Queue.Hide(t.Context(), m.Receipt, long), fault.Missing)
}

func hideAllReportsEach(t *testing.T, s Subject) {
	if errs := s.Queue.HideAll(t.Context(), long); len(errs) != 0 {
		t.Errorf("HideAll without receipts = %v", errs)
	}
	send(t, s.Queue, text("a")...)
	gone := one(t, s.Queue, long)
	remove(t, s.Queue, gone.Receipt)
	receipts := []string{gone.Receipt}
	const live = 11 // more than one call can carry
	for range live {
		send(t, s.Queue, text("b")...)
		receipts = append(receipts, one(t, s.Queue, short).Receipt)
	}
	errs := s.Queue.HideAll(t.Context(), long, receipts...)
	if len(errs) != len(receipts) {
		t.Fatalf("HideAll of %d receipts returned %d results", len(receipts), len(errs))
	}
	wantKind(t, errs[0], fault.Missing)
	for i, err := range errs[1:] {
		if err != nil {
			t.Errorf("receipt %d: %v", i+1, err)
		}
	}
	s.Advance(short + time.Second)
	nothing(t, s.Queue)
}

func deleteAcceptsStale(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	first := one(t, s.Queue, long)
	hide(t, s.Queue, first.Receipt, 0)
	second := one(t, s.Queue, long)
	remove(t, s.Queue, second.Receipt)
	remove(t, s.Queue, first.Receipt)
	remove(t, s.Queue, second.Receipt)
	remove(t, s.Queue)
}

func staleDeleteKeeps(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	first := one(t, s.Queue, long)
	hide(t, s.Queue, first.Receipt, 0)
	second := one(t, s.Queue, long)
	remove(t, s.Queue, first.Receipt)
	hide(t, s.Queue, second.Receipt, 0)
	one(t, s.Queue, long)
}

func countsReceives(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	for want := 1; want <= 2; want++ {
		m := one(t, s.Queue, long)
		if m.Receives != want {
			t.Errorf("delivery %d has %d receives", want, m.Receives)
		}
		hide(t, s.Queue, m.Receipt, 0)
	}
}

func receiptsDiffer(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	first := one(t, s.Queue, long)
	hide(t, s.Queue, first.Receipt, 0)
	if second := one(t, s.Queue, long); first.Receipt == second.Receipt {
		t.Errorf("two deliveries have the same receipt %s", first.Receipt)
	}
}

// keepsSentTime allows for millisecond precision and for a second of skew.
func keepsSentTime(t *testing.T, s Subject) {
	before := s.Now().Add(-time.Second)
	send(t, s.Queue, text("a")...)
	after := s.Now().Add(time.Second)
	first := one(t, s.Queue, short)
	if first.Sent.Before(before) || first.Sent.After(after) {
		t.Errorf("sent at %s, want %s to %s", first.Sent, before, after)
	}
	s.Advance(short + time.Second)
	if again := one(t, s.Queue, long); !again.Sent.Equal(first.Sent) {
		t.Errorf("sent at %s, then at %s", first.Sent, again.Sent)
	}
}

func emptyReturnsNothing(t *testing.T, s Subject) {
	got, err := s.Queue.Receive(t.Context(), 1, time.Second, long)
	if err != nil || len(got) != 0 {
		t.Errorf("received %v, %v", got, err)
	}
}

func cancelledReceive(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := s.Queue.Receive(ctx, 1, time.Second, long)
	if len(got) != 0 {
		t.Errorf("received %v", got)
	}
	wantKind(t, err, fault.Retry)
	one(t, s.Queue, long)
}

// movesToDLQ receives a message once more than MaxReceives.
func movesToDLQ(t *testing.T, s Subject) {
	send(t, s.Queue, queue.Outgoing{Source: "queuetest", Type: "poison.v1", Body: []byte("a")})
	for range s.MaxReceives {
		one(t, s.Queue, short)
		nothing(t, s.Dead)
		s.Advance(short + time.Second)
	}
	nothing(t, s.Queue)
	m := one(t, s.Dead, long)
	if string(m.Body) != "a" || m.Attributes[queue.TypeAttribute] != "poison.v1" {
		t.Errorf("message in the DLQ = %+v", m)
	}
	s.Advance(long + time.Second)
	nothing(t, s.Queue)
}

// movesReturnedToDLQ is the same for receivers that make the message visible at once.
func movesReturnedToDLQ(t *testing.T, s Subject) {
	send(t, s.Queue, text("a")...)
	for range s.MaxReceives {
		hide(t, s.Queue, one(t, s.Queue, long).Receipt, 0)
		nothing(t, s.Dead)
	}
	nothing(t, s.Queue)
	if m := one(t, s.Dead, long); string(m.Body) != "a" {
		t.Errorf("message in the DLQ = %+v", m)
	}
}

// receiversDoNotShare runs four concurrent receivers.
func receiversDoNotShare(t *testing.T, s Subject) {
	const messages = 40
	for range messages {
		send(t, s.Queue, text("a")...)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range messages {
				got, err := s.Queue.Receive(t.Context(), 3, 0, long)
				if err != nil {
					t.Errorf("receiving: %v", err)
					return
				}
				mu.Lock()
				for _, m := range got {
					seen[m.ID]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for id, n := range seen {
		if n > 1 {
			t.Errorf("message %s was received %d times while it was hidden", id, n)
		}
	}
	if len(seen) != messages {
		t.Errorf("%d of %d messages were received", len(seen), messages)
	}
}

// waitsForMessage receives before it sends.
func waitsForMessage(t *testing.T, s Subject) {
	var group sync.WaitGroup
	group.Go(func() {
		got, err := s.Queue.Receive(t.Context(), 1, 20*time.Second, long)
		if err != nil || len(got) != 1 {
			t.Errorf("received %d messages, %v; want 1", len(got), err)
		}
	})
	send(t, s.Queue, text("a")...)
	group.Wait()
}
