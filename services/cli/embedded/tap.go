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

// Tap sits on every call that an actor makes to the world outside of it. It
// must run effect at most once and return what effect returned, or not return
// at all: that is a crash. A nil tap runs the effect.
type Tap func(ctx context.Context, call Call, effect func() error) error

// Call names one call of one actor.
type Call struct {
	// Actor is who calls ("lifecycle-0").
	Actor string
	// Port is "queue", "blob", "cluster" or "cloud".
	Port string
	// Verb is the method, and About what it is about.
	Verb, About string
	// Writes says that the call changes the world.
	Writes bool
}

// wire binds a tap to an actor.
type wire struct {
	actor string
	tap   Tap
}

func (w wire) do(ctx context.Context, port, verb, about string, writes bool, effect func() error) error {
	if w.tap == nil {
		return effect()
	}
	return w.tap(ctx, Call{Actor: w.actor, Port: port, Verb: verb, About: about, Writes: writes}, effect)
}

// sender taps a queue.Sender.
type sender struct {
	wire
	to   queue.Sender
	name string
}

func (s sender) Send(ctx context.Context, messages ...queue.Outgoing) error {
	about := []string{s.name}
	for _, m := range messages {
		about = append(about, m.Type)
	}
	return s.do(ctx, "queue", "send", join(about), true, func() error { return s.to.Send(ctx, messages...) })
}

// line taps a queue.Queue.
type line struct {
	sender
	queue queue.Queue
}

func (l line) Receive(ctx context.Context, limit int, wait, visibility time.Duration) (out []queue.Message, err error) {
	err = l.do(ctx, "queue", "receive", l.name, false, func() error {
		out, err = l.queue.Receive(ctx, limit, wait, visibility)
		return err
	})
	return out, err
}

func (l line) Delete(ctx context.Context, receipts ...string) error {
	return l.do(ctx, "queue", "delete", l.name+" "+join(receipts), true, func() error { return l.queue.Delete(ctx, receipts...) })
}

func (l line) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	return l.do(ctx, "queue", "hide", l.name, true, func() error { return l.queue.Hide(ctx, receipt, visibility) })
}

func (l line) HideAll(ctx context.Context, visibility time.Duration, receipts ...string) []error {
	errs := make([]error, len(receipts))
	for i, receipt := range receipts {
		errs[i] = l.Hide(ctx, receipt, visibility)
	}
	return errs
}

func (l line) Depth(ctx context.Context) (visible, hidden int, err error) { return l.queue.Depth(ctx) }

// store taps a blob.Store.
type store struct {
	wire
	blobs blob.Store
}

func (s store) Put(ctx context.Context, key string, data []byte) error {
	return s.do(ctx, "blob", "put", key, true, func() error { return s.blobs.Put(ctx, key, data) })
}

func (s store) Get(ctx context.Context, key string) (data []byte, err error) {
	err = s.do(ctx, "blob", "get", key, false, func() error {
		data, err = s.blobs.Get(ctx, key)
		return err
	})
	return data, err
}

func (s store) Written(ctx context.Context, key string) (at time.Time, err error) {
	err = s.do(ctx, "blob", "written", key, false, func() error {
		at, err = s.blobs.Written(ctx, key)
		return err
	})
	return at, err
}

// client taps a cluster.Client.
type client struct {
	wire
	cluster cluster.Client
}

func (c client) object(ctx context.Context, verb string, o cluster.Object, write func(context.Context, cluster.Object) (cluster.Object, error)) (out cluster.Object, err error) {
	kind, _ := cluster.KindOf(o)
	err = c.do(ctx, "cluster", verb, kind.Kind+" "+cluster.KeyOf(o).String(), true, func() error {
		out, err = write(ctx, o)
		return err
	})
	return out, err
}

func (c client) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.object(ctx, "create", o, c.cluster.Create)
}

func (c client) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.object(ctx, "update", o, c.cluster.Update)
}

func (c client) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.object(ctx, "update-status", o, c.cluster.UpdateStatus)
}

func (c client) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (out cluster.Object, err error) {
	err = c.do(ctx, "cluster", "get", kind.Kind+" "+key.String(), false, func() error {
		out, err = c.cluster.Get(ctx, kind, key)
		return err
	})
	return out, err
}

func (c client) List(ctx context.Context, kind cluster.Kind, namespace string) (out []cluster.Object, err error) {
	err = c.do(ctx, "cluster", "list", kind.Kind, false, func() error {
		out, err = c.cluster.List(ctx, kind, namespace)
		return err
	})
	return out, err
}

func (c client) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) (out []cluster.Object, err error) {
	err = c.do(ctx, "cluster", "list", kind.Kind+" "+value, false, func() error {
		out, err = c.cluster.ListBy(ctx, kind, index, value)
		return err
	})
	return out, err
}

func (c client) Delete(ctx context.Context, kind cluster.Kind, key cluster.Key, uid types.UID) error {
	return c.do(ctx, "cluster", "delete", kind.Kind+" "+key.String(), true, func() error { return c.cluster.Delete(ctx, kind, key, uid) })
}

func (c client) DeleteAsRead(ctx context.Context, kind cluster.Kind, object cluster.Object) error {
	return c.do(ctx, "cluster", "delete", kind.Kind+" "+cluster.KeyOf(object).String(), true, func() error { return c.cluster.DeleteAsRead(ctx, kind, object) })
}

func (c client) Evict(ctx context.Context, pod cluster.Key, uid types.UID) error {
	return c.do(ctx, "cluster", "evict", "Pod "+pod.String(), true, func() error { return c.cluster.Evict(ctx, pod, uid) })
}

func (c client) DeletePod(ctx context.Context, pod cluster.Key, uid types.UID, grace int64) error {
	return c.do(ctx, "cluster", "delete", "Pod "+pod.String(), true, func() error { return c.cluster.DeletePod(ctx, pod, uid, grace) })
}

func (c client) Report(ctx context.Context, event cluster.Event) error {
	return c.do(ctx, "cluster", "report", event.Reason, true, func() error { return c.cluster.Report(ctx, event) })
}

// ec2 taps what the launcher, interruption and the catalog call.
type ec2 struct {
	wire
	EC2
}

// EC2 is everything that services ask of AWS.
type EC2 interface {
	cloud.Launcher
	cloud.Network
	cloud.Placements
	cloud.Rehearsal
	cloud.Images
	cloud.Clusters
	cloud.Profiles
	cloud.Statuses
}

func (e ec2) DescribeInstances(ctx context.Context, filter cloud.InstanceFilter) (out []cloud.Instance, err error) {
	err = e.do(ctx, "cloud", "describe-instances", "", false, func() error {
		out, err = e.EC2.DescribeInstances(ctx, filter)
		return err
	})
	return out, err
}

func (e ec2) EnsureTemplate(ctx context.Context, t cloud.Template) error {
	return e.do(ctx, "cloud", "ensure-template", t.Name, true, func() error { return e.EC2.EnsureTemplate(ctx, t) })
}

func (e ec2) DeleteTemplate(ctx context.Context, name string) error {
	return e.do(ctx, "cloud", "delete-template", name, true, func() error { return e.EC2.DeleteTemplate(ctx, name) })
}

func (e ec2) CreateFleet(ctx context.Context, r cloud.FleetRequest) (out cloud.FleetResult, err error) {
	err = e.do(ctx, "cloud", "create-fleet", r.Token, true, func() error {
		out, err = e.EC2.CreateFleet(ctx, r)
		return err
	})
	return out, err
}

func (e ec2) Terminate(ctx context.Context, ids []string) error {
	return e.do(ctx, "cloud", "terminate", join(ids), true, func() error { return e.EC2.Terminate(ctx, ids) })
}

func (e ec2) Tag(ctx context.Context, ids []string, tags map[string]string) error {
	return e.do(ctx, "cloud", "tag", join(ids), true, func() error { return e.EC2.Tag(ctx, ids, tags) })
}

func (e ec2) EnsureProfile(ctx context.Context, p cloud.Profile) error {
	return e.do(ctx, "cloud", "ensure-profile", p.Name, true, func() error { return e.EC2.EnsureProfile(ctx, p) })
}

func (e ec2) DescribeStatus(ctx context.Context) (out []cloud.Status, err error) {
	err = e.do(ctx, "cloud", "describe-status", "", false, func() error {
		out, err = e.EC2.DescribeStatus(ctx)
		return err
	})
	return out, err
}
