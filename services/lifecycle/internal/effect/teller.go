package effect

import (
	"context"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

const (
	// room is how many Events may wait, and tellers how many are told at a time.
	room    = 4096
	tellers = 8
	// patience is how long an Event may take to be told.
	patience = 10 * time.Second
)

// Teller tells Kubernetes Events beside everything else: nothing waits for one,
// and when more come than can be told, the latest are lost.
type Teller struct {
	client cluster.Client

	mu      sync.Mutex
	waiting []cluster.Event
	telling int
}

// NewTeller makes a teller.
func NewTeller(client cluster.Client) *Teller { return &Teller{client: client} }

// Tell takes an Event and returns at once.
func (t *Teller) Tell(ctx context.Context, e cluster.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= room {
		return
	}
	t.waiting = append(t.waiting, e)
	if t.telling < tellers {
		t.telling++
		go t.work(context.WithoutCancel(ctx))
	}
}

// work tells until none waits.
func (t *Teller) work(ctx context.Context) {
	for {
		t.mu.Lock()
		if len(t.waiting) == 0 {
			t.telling--
			t.mu.Unlock()
			return
		}
		e := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.mu.Unlock()
		tell(ctx, t.client, e)
	}
}

// tell says one Event. That one is lost, or late, is no reason to hold up a node.
func tell(ctx context.Context, client cluster.Client, e cluster.Event) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = client.Report(ctx, e)
}
