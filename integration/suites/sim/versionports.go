package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/versions"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// versionPorts are the ports of an actor of another version. The actor itself runs the current code; the ports rewrite
// every text that it writes or reads. The next version reads its own texts without the fields that it added, because it
// compares them with what it would write.
//
// A rewritten document has another digest. The ports keep both, so that the actor knows the document by the digest of
// what it wrote or may read, and all other actors by that of the stored bytes.
type versionPorts struct {
	sim     *sim
	version version
	// stored and own map the digests of documents from the actor's to the stored ones and back.
	stored, own map[string]event.Ref
	// texts are the documents as the actor knows them, by its digest.
	texts map[string][]byte
}

func newVersionPorts(s *sim, v version) *versionPorts {
	return &versionPorts{sim: s, version: v, stored: map[string]event.Ref{}, own: map[string]event.Ref{}, texts: map[string][]byte{}}
}

// rewriteWritten rewrites a text that the actor writes.
func (p *versionPorts) rewriteWritten(form versions.TextKind, text []byte) []byte {
	text = replaceRefs(text, p.stored)
	if p.version == next {
		return versions.AddUnknownFields(form, text)
	}
	return p.sim.versions.released.Drop(form, text)
}

// rewriteRead rewrites a text that the actor reads. It does not change it again if it gets the result.
func (p *versionPorts) rewriteRead(form versions.TextKind, text []byte) []byte {
	if p.version == next {
		text = versions.RemoveAddedFields(form, text)
	} else {
		text = p.sim.versions.released.Drop(form, text)
		for _, found := range jsonRef.FindAllSubmatch(text, -1) {
			p.translateDocument(string(found[1]))
		}
	}
	return replaceRefs(text, p.own)
}

// The forms in which texts refer to documents: a Ref in JSON, in any order of its fields, a Ref in an annotation, and
// a digest alone.
var (
	jsonRef = regexp.MustCompile(`"digest":"([0-9a-f]{64})"(.{0,160}?)"size":(\d+)`)
	textRef = regexp.MustCompile(`([0-9a-f]{64})/(\d+)`)
	digest  = regexp.MustCompile(`[0-9a-f]{64}`)
)

// replaceRefs replaces the references to documents in a text.
func replaceRefs(text []byte, by map[string]event.Ref) []byte {
	if len(by) == 0 {
		return text
	}
	text = jsonRef.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := jsonRef.FindSubmatch(found)
		if ref, ok := by[string(parts[1])]; ok {
			return fmt.Appendf(nil, `"digest":"%s"%s"size":%d`, ref.Digest, parts[2], ref.Size)
		}
		return found
	})
	text = textRef.ReplaceAllFunc(text, func(found []byte) []byte {
		name, _, _ := bytes.Cut(found, []byte("/"))
		if ref, ok := by[string(name)]; ok {
			return fmt.Appendf(nil, "%s/%d", ref.Digest, ref.Size)
		}
		return found
	})
	return digest.ReplaceAllFunc(text, func(found []byte) []byte {
		if ref, ok := by[string(found)]; ok {
			return []byte(ref.Digest)
		}
		return found
	})
}

// addDocument notes that the actor knows a stored document by another digest.
func (p *versionPorts) addDocument(own, stored event.Ref, text []byte) {
	p.stored[string(own.Digest)], p.own[string(stored.Digest)], p.texts[string(own.Digest)] = stored, own, text
}

// translateDocument makes the document that the actor reads out of a stored one.
func (p *versionPorts) translateDocument(stored string) {
	if _, known := p.own[stored]; known {
		return
	}
	for _, key := range p.sim.world.Blobs.ListKeys() {
		kind, name, _ := strings.Cut(key, "/")
		if name != stored {
			continue
		}
		var text json.RawMessage
		if !p.sim.checker.readDocument(key, &text) {
			return
		}
		dropped := p.rewriteRead(versions.DocumentForm(key), text)
		own, data, err := blob.Encode(kind, json.RawMessage(dropped))
		before, _, errBefore := blob.Encode(kind, text)
		if err == nil && errBefore == nil && own.Digest != before.Digest {
			p.addDocument(own, event.Ref{Kind: kind, Digest: event.Digest(stored), Size: before.Size}, data)
		}
	}
}

// WrapSender implements embedded.PortWrapper.
func (p *versionPorts) WrapSender(to queue.Sender) queue.Sender { return versionSender{to, p} }

type versionSender struct {
	queue.Sender
	ports *versionPorts
}

func (s versionSender) Send(ctx context.Context, messages ...queue.Outgoing) error {
	out := make([]queue.Outgoing, len(messages))
	for i, m := range messages {
		m.Body = versions.RewriteMessage(bytes.Clone(m.Body), s.ports.rewriteWritten)
		out[i] = m
	}
	return s.Sender.Send(ctx, out...)
}

// WrapQueue implements embedded.PortWrapper.
func (p *versionPorts) WrapQueue(q queue.Queue) queue.Queue { return versionQueue{q, p} }

type versionQueue struct {
	queue.Queue
	ports *versionPorts
}

func (q versionQueue) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	messages, err := q.Queue.Receive(ctx, limit, wait, visibility)
	for i := range messages {
		messages[i].Body = versions.RewriteMessage(bytes.Clone(messages[i].Body), q.ports.rewriteRead)
	}
	return messages, err
}

// WrapStore implements embedded.PortWrapper.
func (p *versionPorts) WrapStore(blobs blob.Store) blob.Store { return versionStore{blobs, p} }

type versionStore struct {
	blobs blob.Store
	ports *versionPorts
}

// key returns the key of the stored document that the actor knows by another key.
func (s versionStore) key(key string) string {
	kind, name, _ := strings.Cut(key, "/")
	if ref, ok := s.ports.stored[name]; ok {
		return kind + "/" + string(ref.Digest)
	}
	return key
}

func (s versionStore) Put(ctx context.Context, key string, data []byte) error {
	form := versions.DocumentForm(key)
	kind, name, _ := strings.Cut(key, "/")
	if len(name) != 64 {
		return s.blobs.Put(ctx, key, s.ports.rewriteWritten(form, data))
	}
	var text json.RawMessage
	if err := blob.DecodeFile(key, data, &text); err != nil {
		return err
	}
	written := s.ports.rewriteWritten(form, text)
	if bytes.Equal(written, text) {
		return s.blobs.Put(ctx, key, data)
	}
	ref, stored, err := blob.Encode(kind, json.RawMessage(written))
	if err != nil {
		return err
	}
	if ref.Digest != event.Digest(name) {
		s.ports.addDocument(event.Ref{Kind: kind, Digest: event.Digest(name), Size: len(data)}, ref, data)
	}
	return s.blobs.Put(ctx, ref.Key(), stored)
}

func (s versionStore) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.blobs.Get(ctx, s.key(key))
	_, name, _ := strings.Cut(key, "/")
	if text, ok := s.ports.texts[name]; ok && err == nil {
		return bytes.Clone(text), nil
	}
	if err == nil && len(name) != 64 {
		data = s.ports.rewriteRead(versions.DocumentForm(key), data)
	}
	return data, err
}

func (s versionStore) LastWritten(ctx context.Context, key string) (time.Time, error) {
	return s.blobs.LastWritten(ctx, s.key(key))
}

// WrapFeed implements embedded.PortWrapper.
func (p *versionPorts) WrapFeed(feed cluster.Feed) cluster.Feed {
	return &versionFeed{Feed: feed, ports: p, copies: map[cluster.Object]cluster.Object{}}
}

// versionFeed is a cache with objects as the version reads them.
type versionFeed struct {
	cluster.Feed
	ports *versionPorts
	// copies are the rewritten copies of cached objects. They are valid for a number of documents.
	copies    map[cluster.Object]cluster.Object
	documents int
}

func (f *versionFeed) Get(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
	o, ok := f.Feed.Get(kind, key)
	if !ok {
		return o, ok
	}
	return f.read(o), ok
}

func (f *versionFeed) List(kind cluster.Kind) []cluster.Object { return f.readAll(f.Feed.List(kind)) }

func (f *versionFeed) ListBy(kind cluster.Kind, index cluster.Index, value string) []cluster.Object {
	return f.readAll(f.Feed.ListBy(kind, index, value))
}

func (f *versionFeed) readAll(objects []cluster.Object) []cluster.Object {
	out := make([]cluster.Object, len(objects))
	for i := range objects {
		out[i] = f.read(objects[i])
	}
	return out
}

// read returns the same copy for the same object, because the watcher compares objects by identity.
func (f *versionFeed) read(o cluster.Object) cluster.Object {
	switch o.(type) {
	case *karpenter.NodeClaim, *karpenter.NodePool, *karpenter.EC2NodeClass, *corev1.ConfigMap:
	default:
		return o
	}
	if len(f.ports.own) != f.documents {
		clear(f.copies)
		f.documents = len(f.ports.own)
	}
	if _, known := f.copies[o]; !known {
		copied := o.DeepCopyObject().(cluster.Object)
		rewriteObject(copied, f.ports.rewriteRead)
		f.copies[o] = copied
	}
	return f.copies[o]
}

// rewriteObject rewrites the texts of an object in place.
func rewriteObject(o cluster.Object, rewrite func(versions.TextKind, []byte) []byte) {
	annotations := o.GetAnnotations()
	for name, text := range annotations {
		annotations[name] = string(rewrite(versions.Annotations+versions.TextKind(name), []byte(text)))
	}
	if config, ok := o.(*corev1.ConfigMap); ok {
		for key, text := range config.Data {
			config.Data[key] = string(rewrite(versions.ConfigMaps+versions.TextKind(config.Name+"/"+key), []byte(text)))
		}
	}
}

// WrapClient implements embedded.PortWrapper.
func (p *versionPorts) WrapClient(client cluster.Client) cluster.Client {
	return versionClient{client, p}
}

type versionClient struct {
	cluster.Client
	ports *versionPorts
}

func (c versionClient) Create(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.read(c.Client.Create(ctx, c.writeAsVersion(o)))
}

func (c versionClient) Update(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.read(c.Client.Update(ctx, c.writeAsVersion(o)))
}

func (c versionClient) UpdateStatus(ctx context.Context, o cluster.Object) (cluster.Object, error) {
	return c.read(c.Client.UpdateStatus(ctx, c.writeAsVersion(o)))
}

func (c versionClient) Get(ctx context.Context, kind cluster.Kind, key cluster.Key) (cluster.Object, error) {
	return c.read(c.Client.Get(ctx, kind, key))
}

func (c versionClient) List(ctx context.Context, kind cluster.Kind, namespace string) ([]cluster.Object, error) {
	return c.readAll(c.Client.List(ctx, kind, namespace))
}

func (c versionClient) ListBy(ctx context.Context, kind cluster.Kind, index cluster.Index, value string) ([]cluster.Object, error) {
	return c.readAll(c.Client.ListBy(ctx, kind, index, value))
}

func (c versionClient) read(o cluster.Object, err error) (cluster.Object, error) {
	if err != nil || o == nil {
		return o, err
	}
	o = o.DeepCopyObject().(cluster.Object)
	rewriteObject(o, c.ports.rewriteRead)
	return o, nil
}

func (c versionClient) readAll(objects []cluster.Object, err error) ([]cluster.Object, error) {
	out := make([]cluster.Object, len(objects))
	for i := range objects {
		out[i], _ = c.read(objects[i], nil)
	}
	return out, err
}

// writeAsVersion returns the object as the version writes it. The next version also adds an annotation and a condition.
func (c versionClient) writeAsVersion(o cluster.Object) cluster.Object {
	o = o.DeepCopyObject().(cluster.Object)
	rewriteObject(o, c.ports.rewriteWritten)
	if claim, ok := o.(*karpenter.NodeClaim); ok && c.ports.version == next {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "joist.sh/of-the-next-version", "true")
		claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
			Type: "OfTheNextVersion", Status: metav1.ConditionTrue, Reason: "NextVersion",
		}, c.ports.sim.world.Now())
	}
	return o
}
