package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/event"
)

// documentKinds are the folders of the bucket.
var documentKinds = []string{event.BatchKind, event.SnapshotKind, event.NodesKind, event.PlanKind, event.IntentKind, event.InventoryKind, event.CatalogueKind, "markets"}

// put writes an object, if the policies allow it.
func (a *attacker) put(key string, data []byte) bool {
	if !a.rights.allowsPut(a.name, key) {
		a.count("refused by IAM")
		return false
	}
	if err := a.world.Blobs.Put(context.Background(), key, data); err != nil {
		a.count("refused by AWS")
		return false
	}
	a.count("written")
	return true
}

// storeDocument writes a document under its digest.
func (a *attacker) storeDocument(kind string, document any) (event.Ref, bool) {
	ref, data, err := blob.Encode(kind, document)
	return ref, err == nil && a.put(ref.Key(), data)
}

// findRef returns a reference to a stored document of a kind.
func (a *attacker) findRef(kind string) event.Ref {
	key := pick(a.random, a.keysOf(kind))
	data, err := a.world.Blobs.Get(context.Background(), key)
	if err != nil {
		return event.Ref{Kind: kind, Digest: event.DigestOf([]byte(key)), Size: 1}
	}
	return event.Ref{Kind: kind, Digest: event.DigestOf(data), Size: len(data)}
}

func (a *attacker) keysOf(kind string) []string {
	var out []string
	for _, key := range a.world.Blobs.ListKeys() {
		if folder, name, _ := strings.Cut(key, "/"); folder == kind && name != "latest" {
			out = append(out, key)
		}
	}
	return out
}

// writeMutated writes a changed copy of a stored document. Plans get changed copies of their intents.
func (a *attacker) writeMutated(kind string) (event.Ref, bool) {
	document, ok := a.readMap(pick(a.random, a.keysOf(kind)))
	if !ok {
		return event.Ref{}, false
	}
	if kind == event.PlanKind {
		if intents, ok := document["intents"].([]any); ok {
			a.replaceIntents(intents)
		}
	}
	return a.storeDocument(kind, mutate(a.random, document, a.liveNames(), a.random.IntN(5)))
}

// replaceIntents replaces the references of a plan's intents.
func (a *attacker) replaceIntents(intents []any) {
	for _, item := range intents {
		intent, _ := item.(map[string]any)
		for field, value := range intent {
			old, _ := value.(map[string]any)
			if old["kind"] != event.IntentKind || a.random.IntN(2) == 0 {
				continue
			}
			digest, _ := old["digest"].(string)
			document, ok := a.readMap(event.IntentKind + "/" + digest)
			if !ok {
				continue
			}
			if ref, ok := a.storeDocument(event.IntentKind, mutate(a.random, document, a.liveNames(), 1+a.random.IntN(3))); ok {
				intent[field] = ref
			}
		}
	}
}

// readMap reads a stored document without its type.
func (a *attacker) readMap(key string) (map[string]any, bool) {
	var document map[string]any
	return document, a.checker.readDocument(key, &document) && document != nil
}

// writeDocument writes an object that is no valid document of its key: of the wrong digest, compressed twice, truncated,
// outside the folders, or a pointer to something else.
func (a *attacker) writeDocument() {
	kind := pick(a.random, documentKinds)
	data := []byte(pick(a.random, []string{"", "{", "null", "[]", `{"seq":-1}`, "\x28\xb5\x2f\xfd", strings.Repeat("[", 100000), `{"a":"` + strings.Repeat("x", 100000) + `"}`}))
	key := kind + "/" + string(event.DigestOf(data))
	switch a.random.IntN(6) {
	case 0:
		key = pick(a.random, a.keysOf(kind)) // An object of others is overwritten.
	case 1:
		key = kind + "/latest"
		if a.random.IntN(2) == 0 {
			data, _ = json.Marshal(a.pickRef(pick(a.random, documentKinds)))
		}
	case 2:
		key = pick(a.random, []string{kind + "/../" + event.IntentKind + "/x", "/" + kind + "/x", kind, "", "other/" + kind + "/x", kind + "/\x00", event.IntentKind + "/" + string(event.DigestOf(data))})
	case 3:
		data = compress(bytes.Repeat([]byte(" "), 1<<20))
		key = kind + "/" + string(event.DigestOf(data))
	case 4:
		if ref, ok := a.writeMutated(kind); ok {
			data, _ = json.Marshal(ref)
			key = kind + "/latest"
		}
	}
	a.put(key, data)
}

func compress(data []byte) []byte {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil
	}
	defer func() { _ = encoder.Close() }()
	return encoder.EncodeAll(data, nil)
}
