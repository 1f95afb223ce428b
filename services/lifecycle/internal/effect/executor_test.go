package effect_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func epoch() time.Time { return memcluster.Epoch }

// recorder records messages, or fails.
type recorder struct {
	types []string
	err   error
}

func (r *recorder) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		r.types = append(r.types, m.Type)
	}
	return r.err
}

func TestExecute(t *testing.T) {
	send := effect.Send{Body: event.TerminateRequested{InstanceID: "i-1"}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	key := cluster.KeyOf(config)
	update := func(s *memcluster.Server, version string) effect.Effect {
		object, err := s.Get(t.Context(), cluster.ConfigMaps, key)
		if err != nil {
			t.Fatal(err)
		}
		changed := object.(*corev1.ConfigMap)
		changed.Data = map[string]string{"x": "y"}
		if version != "" {
			changed.ResourceVersion = version
		}
		return effect.Update{Object: changed}
	}
	remove := effect.Delete{Kind: cluster.ConfigMaps, Key: key}
	again := effect.Delete{Kind: cluster.ConfigMaps, Key: cluster.Key{Namespace: "default", Name: "gone"}}
	cause := &event.Envelope{ID: "cause"}
	for _, test := range []struct {
		name    string
		cause   *event.Envelope
		effects func(*memcluster.Server) []effect.Effect
		fault   *memcluster.Fault
		sent    bool
		kind    fault.Kind
	}{
		{"all effects in order", nil, func(s *memcluster.Server) []effect.Effect { return []effect.Effect{update(s, ""), remove, send} }, nil, true, ""},
		{"a lost swap ends a reconcile without an error", nil, func(s *memcluster.Server) []effect.Effect { return []effect.Effect{update(s, "1"), send} }, nil, false, ""},
		{"a lost swap redelivers a message", cause, func(s *memcluster.Server) []effect.Effect { return []effect.Effect{update(s, "1"), send} }, nil, false, fault.Conflict},
		{"a missing object ends the list", cause, func(*memcluster.Server) []effect.Effect { return []effect.Effect{again, send} }, nil, false, ""},
		{"an error ends the list", nil, func(s *memcluster.Server) []effect.Effect { return []effect.Effect{update(s, ""), send} }, &memcluster.Fault{As: fault.Retry}, false, fault.Retry},
		{"a lost Event is not an error", nil, func(*memcluster.Server) []effect.Effect {
			return []effect.Effect{effect.Report{Event: cluster.Event{About: config, Kind: cluster.ConfigMaps}}, send}
		}, &memcluster.Fault{Verb: memcluster.VerbReport, As: fault.Denied}, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := memcluster.New(memcluster.Options{})
			s.SeedObjects(config)
			effects := test.effects(s)
			if test.fault != nil {
				s.InjectFaults(*test.fault)
			}
			launcher := &recorder{}
			doer := effect.Executor{
				Client: s.ClientFor("lifecycle"), Launcher: launcher, Maker: event.Maker{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}},
				Now: epoch,
			}
			err := doer.Execute(t.Context(), test.cause, effects...)
			if got := fault.KindOf(err); got != test.kind {
				t.Errorf("got error kind %q (%v), want %q", got, err, test.kind)
			}
			if sent := slices.Contains(launcher.types, "terminate.requested.v1"); sent != test.sent {
				t.Errorf("the last effect was executed: %t, want %t", sent, test.sent)
			}
		})
	}
}

func TestExecuteReturnsSendErrors(t *testing.T) {
	launcher := &recorder{err: fault.E("sending", fault.Unknown, nil)}
	doer := effect.Executor{Launcher: launcher, Maker: event.Maker{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}}, Now: epoch}
	if err := doer.Execute(t.Context(), nil, effect.Send{Body: event.TerminateRequested{InstanceID: "i-1"}}); !fault.Is(err, fault.Unknown) {
		t.Errorf("without a queue Execute returned %v", err)
	}
	for _, kind := range []fault.Kind{fault.Missing, fault.Conflict} {
		launcher.err = fault.E("sending", kind, nil)
		for _, cause := range []*event.Envelope{nil, {ID: "cause"}} {
			if err := doer.Execute(t.Context(), cause, effect.Send{Body: event.TerminateRequested{InstanceID: "i-1"}}); !fault.Is(err, kind) {
				t.Errorf("the queue failed with %s, and Execute returned %v", kind, err)
			}
		}
	}
	if err := doer.Execute(t.Context(), nil, effect.Send{Body: event.TerminateRequested{}}); !fault.Is(err, fault.Bug) {
		t.Errorf("an invalid body returned %v", err)
	}
}

// A replica that another may have replaced executes only what the API server refuses if the object has changed.
func TestOnlyTheLeaderRemovesObjects(t *testing.T) {
	read := func(s *memcluster.Server, kind cluster.Kind, key cluster.Key) cluster.Object {
		o, err := s.Get(t.Context(), kind, key)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	web, node := cluster.Key{Namespace: "default", Name: "web"}, cluster.Key{Name: "n"}
	for name, c := range map[string]struct {
		effect      func(s *memcluster.Server) effect.Effect
		conditional bool
	}{
		"evict": {effect: func(s *memcluster.Server) effect.Effect {
			return effect.Evict{Pod: read(s, cluster.Pods, web).(*corev1.Pod)}
		}},
		"delete a pod": {effect: func(s *memcluster.Server) effect.Effect {
			return effect.DeletePod{Pod: read(s, cluster.Pods, web).(*corev1.Pod)}
		}},
		"delete by UID": {effect: func(s *memcluster.Server) effect.Effect {
			return effect.Delete{Kind: cluster.Nodes, Key: node, UID: read(s, cluster.Nodes, node).GetUID()}
		}},
		"delete as read": {effect: func(s *memcluster.Server) effect.Effect {
			return effect.Delete{Kind: cluster.Nodes, Key: node, Read: read(s, cluster.Nodes, node)}
		}, conditional: true},
		"update": {effect: func(s *memcluster.Server) effect.Effect { return effect.Update{Object: read(s, cluster.Nodes, node)} }, conditional: true},
		"update the status": {effect: func(s *memcluster.Server) effect.Effect {
			return effect.UpdateStatus{Object: read(s, cluster.Nodes, node)}
		}, conditional: true},
	} {
		for _, leads := range []bool{true, false} {
			s := memcluster.New(memcluster.Options{})
			s.SeedObjects(
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: "web"}, Spec: corev1.PodSpec{NodeName: node.Name}},
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: "n"}},
			)
			executor := effect.Executor{Client: s.ClientFor("lifecycle"), Now: epoch, Leads: func() bool { return leads }}
			err := executor.ExecuteOne(t.Context(), c.effect(s))
			if want := leads || c.conditional; (err == nil) != want || !want && !fault.Is(err, fault.Retry) {
				t.Errorf("%s by a replica of which Leads returns %t: %v", name, leads, err)
			}
		}
	}
}

// Each effect is reported before it is executed, and each deleted NodeClaim after it, with the reason. Both functions may be nil.
func TestReportsOfEffects(t *testing.T) {
	claim, node := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}
	deletions := []effect.Effect{
		effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(claim), UID: claim.UID, Why: "empty"},
		effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(node), UID: node.UID},
	}
	for _, listens := range []bool{true, false} {
		s := memcluster.New(memcluster.Options{})
		s.SeedObjects(claim, node)
		executor := effect.Executor{Client: s.ClientFor("lifecycle"), Now: epoch}
		var got []string
		if listens {
			executor.OnEffect = func(e effect.Effect) { got = append(got, "effect on "+string(e.(effect.Delete).UID)) }
			executor.OnClaimDeleted = func(uid types.UID, why string) { got = append(got, "deleted "+string(uid)+": "+why) }
		}
		if err := executor.Execute(t.Context(), nil, deletions...); err != nil {
			t.Fatal(err)
		}
		if want := []string{"effect on c", "deleted c: empty", "effect on n"}; listens && !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A pod is deleted from the node for which that was decided, and not from another one of that name.
func TestPodOfAnotherNodeStays(t *testing.T) {
	for uid, want := range map[types.UID]fault.Kind{"node-1": "", "node-2": fault.Conflict, "": fault.Missing} {
		s := memcluster.New(memcluster.Options{})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}, Spec: corev1.PodSpec{NodeName: "n"}}
		s.SeedObjects(pod)
		if uid != "" {
			s.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}})
		}
		err := effect.Executor{Client: s.ClientFor("lifecycle"), Now: epoch}.ExecuteOne(t.Context(), effect.DeletePod{
			Pod: pod, GraceSeconds: 1, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-1"}},
		})
		left, readErr := cluster.Get[*corev1.Pod](t.Context(), s, cluster.Pods, cluster.KeyOf(pod))
		stays := readErr == nil && left.DeletionTimestamp == nil
		if fault.KindOf(err) != want || stays == (want == "") {
			t.Errorf("with the node %q: the pod stays: %t, got %v, want %q", uid, stays, err, want)
		}
	}
}
