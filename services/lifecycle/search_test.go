package lifecycle_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// slowListClient takes a second for each list of claims.
type slowListClient struct {
	cluster.Client
	lists atomic.Int64
}

func (l *slowListClient) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	if kind == cluster.NodeClaims {
		l.lists.Add(1)
		time.Sleep(time.Second)
	}
	return l.Client.List(ctx, kind, namespace)
}

// Concurrent notices about unknown instances share one list of claims. Each gets its own result,
// which is never older than the notice.
func TestSearchesShareAList(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.takeSent()
	provider := s.getClaim("old-0").Status.ProviderID
	hide := func(id string) {
		c := s.getClaim("old-0").DeepCopy()
		c.Status.ProviderID = id
		if _, err := s.ClientFor("test").UpdateStatus(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	hide("")
	s.cache.DeliverAll() // The cache keeps returning a claim without an instance.
	client := &slowListClient{Client: s.ClientFor("lifecycle")}
	s.startService(client)
	const storm = 50
	kinds := make([]fault.Kind, storm)
	synctest.Test(t, func(t *testing.T) {
		var notices sync.WaitGroup
		for i := range storm {
			notices.Go(func() {
				instance := "i-0"
				if i > 0 {
					instance = fmt.Sprintf("i-none-%d", i)
					time.Sleep(time.Millisecond)
				}
				kinds[i] = fault.KindOf(s.svc.Handle(t.Context(), s.noticeMessage(event.SpotInterruption, instance, "terminate")))
			})
		}
		synctest.Wait()
		time.Sleep(500 * time.Millisecond) // The first list is in progress.
		hide(provider)
		notices.Wait()
	})
	if got := client.lists.Load(); got != 2 {
		t.Errorf("%d notices listed the claims %d times", storm, got)
	}
	for i, kind := range kinds {
		if want := map[bool]fault.Kind{true: "", false: fault.Retry}[i == 0]; kind != want {
			t.Errorf("notice %d returned %q, want %q", i, kind, want)
		}
	}
	if s.getClaim("old-0").DeletionTimestamp == nil {
		t.Error("the notice about the known instance was ignored")
	}
}
