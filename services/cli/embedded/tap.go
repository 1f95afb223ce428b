package embedded

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Tap intercepts every call of an actor. It runs effect at most once and returns its error; to
// simulate a crash it does not return. A nil Tap runs the effect.
type Tap func(ctx context.Context, call Call, effect func() error) error

// Call describes one call of one actor.
type Call struct {
	// Actor is the name of the caller, such as lifecycle-0.
	Actor string
	// Port is "queue", "blob", "cluster" or "cloud".
	Port string
	// Verb is the method, and About its main argument.
	Verb, About string
	// Writes reports whether the call changes the environment.
	Writes bool
}

// PortWrapper wraps the ports of an actor, for example so that they exchange the texts of another version
// of Joist.
type PortWrapper interface {
	WrapSender(to queue.Sender) queue.Sender
	WrapQueue(q queue.Queue) queue.Queue
	WrapStore(blobs blob.Store) blob.Store
	WrapClient(client cluster.Client) cluster.Client
	WrapFeed(feed cluster.Feed) cluster.Feed
}

// tapper runs the calls of an actor through a tap.
type tapper struct {
	actor string
	tap   Tap
	ports PortWrapper
}

func (w tapper) callTapped(ctx context.Context, port, verb, about string, writes bool, effect func() error) error {
	if w.tap == nil {
		return effect()
	}
	return w.tap(ctx, Call{Actor: w.actor, Port: port, Verb: verb, About: about, Writes: writes}, effect)
}

// tappedSender is a queue.Sender with a tap.
type tappedSender struct {
	tapper
	to   queue.Sender
	name string
}

func (s tappedSender) Send(ctx context.Context, messages ...queue.Outgoing) error {
	about := []string{s.name}
	for _, m := range messages {
		about = append(about, m.Type)
	}
	return s.callTapped(ctx, "queue", "send", joinIDs(about), true, func() error { return s.to.Send(removeTimer(ctx), messages...) })
}

// tappedQueue is a queue.Queue with a tap.
type tappedQueue struct {
	tappedSender
	queue queue.Queue
}

func (l tappedQueue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) (out []queue.Message, err error) {
	err = l.callTapped(ctx, "queue", "receive", l.name, false, func() error {
		out, err = l.queue.Receive(ctx, limit, wait, visibility)
		return err
	})
	return out, err
}

func (l tappedQueue) Delete(ctx context.Context, receipts ...string) error {
	return l.callTapped(ctx, "queue", "delete", l.name+" "+joinIDs(receipts), true, func() error { return l.queue.Delete(ctx, receipts...) })
}

func (l tappedQueue) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	return l.callTapped(ctx, "queue", "hide", l.name, true, func() error { return l.queue.Hide(ctx, receipt, visibility) })
}

func (l tappedQueue) HideAll(ctx context.Context, visibility time.Duration, receipts ...string) []error {
	errs := make([]error, len(receipts))
	for i, receipt := range receipts {
		errs[i] = l.Hide(ctx, receipt, visibility)
	}
	return errs
}

func (l tappedQueue) Depth(ctx context.Context) (visible, hidden int, err error) {
	return l.queue.Depth(ctx)
}

// tappedStore is a blob.Store with a tap.
type tappedStore struct {
	tapper
	blobs blob.Store
}

func (s tappedStore) Put(ctx context.Context, key string, data []byte) error {
	return s.callTapped(ctx, "blob", "put", key, true, func() error { return s.blobs.Put(ctx, key, data) })
}

func (s tappedStore) Get(ctx context.Context, key string) (data []byte, err error) {
	err = s.callTapped(ctx, "blob", "get", key, false, func() error {
		data, err = s.blobs.Get(ctx, key)
		return err
	})
	return data, err
}

func (s tappedStore) LastWritten(ctx context.Context, key string) (at time.Time, err error) {
	err = s.callTapped(ctx, "blob", "written", key, false, func() error {
		at, err = s.blobs.LastWritten(ctx, key)
		return err
	})
	return at, err
}

// tappedClient is a cluster.Client with a tap.
type tappedClient struct {
	tapper
	cluster cluster.Client
}

func (c tappedClient) writeObject(ctx context.Context, verb string, o cluster.Object, write func(context.Context, cluster.Object) (cluster.Object, error)) (out cluster.Object, err error) {
	kind, _ := cluster.KindOf(o)
	err = c.callTapped(ctx, "cluster", verb, kind.Kind+" "+cluster.KeyOf(o).String(), true, func() error {
		out, err = write(ctx, o)
		return err
	})
	return out, err
}

func (c tappedClient) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, "create", o, c.cluster.Create)
}

func (c tappedClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, "update", o, c.cluster.Update)
}

func (c tappedClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.writeObject(ctx, "update-status", o, c.cluster.UpdateStatus)
}

func (c tappedClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (out cluster.Object, err error) {
	err = c.callTapped(ctx, "cluster", "get", kind.Kind+" "+key.String(), false, func() error {
		out, err = c.cluster.Get(ctx, kind, key)
		return err
	})
	return out, err
}

func (c tappedClient) List(ctx context.Context, kind cluster.Kind, namespace string) (out []cluster.Object, err error) {
	err = c.callTapped(ctx, "cluster", "list", kind.Kind, false, func() error {
		out, err = c.cluster.List(ctx, kind, namespace)
		return err
	})
	return out, err
}

func (c tappedClient) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) (out []cluster.Object, err error) {
	err = c.callTapped(ctx, "cluster", "list", kind.Kind+" "+value, false, func() error {
		out, err = c.cluster.ListBy(ctx, kind, index, value)
		return err
	})
	return out, err
}

func (c tappedClient) PatchAnnotation(ctx context.Context, object cluster.Object, key string, value *string) error {
	kind, _ := cluster.KindOf(object)
	return c.callTapped(ctx, "cluster", "patch", kind.Kind+" "+cluster.KeyOf(object).String(), true, func() error { return c.cluster.PatchAnnotation(ctx, object, key, value) })
}

func (c tappedClient) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	return c.callTapped(ctx, "cluster", "delete", kind.Kind+" "+key.String(), true, func() error { return c.cluster.Delete(ctx, kind, key, uid) })
}

func (c tappedClient) DeleteAsRead(ctx context.Context, kind cluster.Kind, object cluster.Object) error {
	return c.callTapped(ctx, "cluster", "delete", kind.Kind+" "+cluster.KeyOf(object).String(), true, func() error { return c.cluster.DeleteAsRead(ctx, kind, object) })
}

func (c tappedClient) Evict(ctx context.Context, pod cluster.Key, uid types.UID) error {
	return c.callTapped(ctx, "cluster", "evict", "Pod "+pod.String(), true, func() error { return c.cluster.Evict(ctx, pod, uid) })
}

func (c tappedClient) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, grace int64) error {
	return c.callTapped(ctx, "cluster", "delete", "Pod "+pod.String(), true, func() error { return c.cluster.DeletePod(ctx, pod, uid, grace) })
}

func (c tappedClient) Report(ctx context.Context, event cluster.Event) error {
	return c.callTapped(ctx, "cluster", "report", event.Reason, true, func() error { return c.cluster.Report(ctx, event) })
}

// tappedEC2 is an EC2 with a tap.
type tappedEC2 struct {
	tapper
	EC2
}

// EC2 has the calls of the services to AWS.
type EC2 interface {
	cloud.Launcher
	cloud.Network
	cloud.Placements
	cloud.DryRunner
	cloud.Images
	cloud.Clusters
	cloud.Profiles
	cloud.Statuses
}

func (e tappedEC2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) (out []cloud.Instance, err error) {
	err = e.callTapped(ctx, "cloud", "describe-instances", "", false, func() error {
		out, err = e.EC2.DescribeInstances(ctx, filter)
		return err
	})
	return out, err
}

func (e tappedEC2) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	return e.callTapped(ctx, "cloud", "ensure-template", t.Name, true, func() error { return e.EC2.EnsureTemplate(ctx, t) })
}

func (e tappedEC2) DeleteTemplate(ctx context.Context, name string) error {
	return e.callTapped(ctx, "cloud", "delete-template", name, true, func() error { return e.EC2.DeleteTemplate(ctx, name) })
}

func (e tappedEC2) CreateFleet(ctx context.Context, r cloud.FleetRequest) (out cloud.FleetResult, err error) {
	err = e.callTapped(ctx, "cloud", "create-fleet", r.Token, true, func() error {
		out, err = e.EC2.CreateFleet(ctx, r)
		return err
	})
	return out, err
}

func (e tappedEC2) Terminate(ctx context.Context, ids []string) error {
	return e.callTapped(ctx, "cloud", "terminate", joinIDs(ids), true, func() error { return e.EC2.Terminate(ctx, ids) })
}

func (e tappedEC2) Reboot(ctx context.Context, id string) error {
	return e.callTapped(ctx, "cloud", "reboot", id, true, func() error { return e.EC2.Reboot(ctx, id) })
}

func (e tappedEC2) Tag(ctx context.Context, ids []string, tags map[string]string) error {
	return e.callTapped(ctx, "cloud", "tag", joinIDs(ids), true, func() error { return e.EC2.Tag(ctx, ids, tags) })
}

func (e tappedEC2) EnsureProfile(ctx context.Context, p cloud.Profile) error {
	return e.callTapped(ctx, "cloud", "ensure-profile", p.Name, true, func() error { return e.EC2.EnsureProfile(ctx, p) })
}

func (e tappedEC2) DescribeStatus(ctx context.Context) (out []cloud.Status, err error) {
	err = e.callTapped(ctx, "cloud", "describe-status", "", false, func() error {
		out, err = e.EC2.DescribeStatus(ctx)
		return err
	})
	return out, err
}
