package apifaults

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
)

// leaseRecorder records the holders of the services' Leases.
type leaseRecorder struct {
	mu   sync.Mutex
	last map[string]coordinationv1.LeaseSpec
	// moves is the number of changes of a holder, and early has the changes that came too early.
	moves int
	early []string
}

// record reads the Leases.
func (l *leaseRecorder) record(ctx context.Context, kube kubernetes.Interface) error {
	list, err := kube.CoordinationV1().Leases(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]coordinationv1.LeaseSpec{}
	}
	for _, item := range list.Items {
		l.observe(item.Name, item.Spec)
	}
	return nil
}

// observe compares a Lease with its last state. All processes have the clock of this machine.
func (l *leaseRecorder) observe(name string, now coordinationv1.LeaseSpec) {
	before, known := l.last[name]
	l.last[name] = now
	if !known || holderOf(before) == "" || holderOf(now) == "" || holderOf(before) == holderOf(now) {
		return
	}
	l.moves++
	if waited := now.RenewTime.Sub(before.RenewTime.Time); waited < lease.Duration {
		l.early = append(l.early, name+" moved from "+holderOf(before)+" to "+holderOf(now)+" "+waited.String()+" after its renewal")
	}
}

func holderOf(spec coordinationv1.LeaseSpec) string {
	if spec.HolderIdentity == nil {
		return ""
	}
	return *spec.HolderIdentity
}

// holder returns the last holder of a Lease.
func (l *leaseRecorder) holder(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return holderOf(l.last[name])
}

// check requires that no holder lost a Lease that was still valid.
func (l *leaseRecorder) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) < 2 {
		t.Errorf("the Leases %v were observed, want one for watcher and one for lifecycle", l.last)
	}
	for _, text := range l.early {
		t.Errorf("%s, want at least %s", text, lease.Duration)
	}
	if l.moves == 0 {
		t.Error("no Lease moved to the other replica")
	}
}

// TestEarlyMove shows that the recorder finds a Lease that moves too early.
func TestEarlyMove(t *testing.T) {
	began := time.Now()
	spec := func(holder string, after time.Duration) coordinationv1.LeaseSpec {
		return coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: began.Add(after)}}
	}
	l := leaseRecorder{last: map[string]coordinationv1.LeaseSpec{}}
	l.observe("a", spec("one", 0))
	l.observe("a", spec("two", lease.Duration))
	l.observe("a", spec("", lease.Duration+time.Second))
	l.observe("a", spec("one", lease.Duration+2*time.Second))
	if len(l.early) != 0 {
		t.Errorf("found early moves %v", l.early)
	}
	l.observe("a", spec("two", lease.Duration+10*time.Second))
	if len(l.early) != 1 {
		t.Errorf("found %d early moves, want 1", len(l.early))
	}
}
