package blob_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

type document struct {
	Name  string            `json:"name"`
	Tags  map[string]string `json:"tags,omitempty"`
	Sizes []int             `json:"sizes,omitempty"`
}

// storeText stores arbitrary bytes under their digest.
func storeText(t *testing.T, b blob.Store, text []byte) event.Ref {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := encoder.EncodeAll(text, nil)
	ref := event.Ref{Kind: "things", Digest: event.DigestOf(data), Size: len(data)}
	if err := b.Put(t.Context(), ref.Key(), data); err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestDocumentRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		doc := document{
			Name:  rapid.String().Draw(r, "name"),
			Tags:  rapid.MapOfN(rapid.StringN(1, 5, -1), rapid.String(), 1, 8).Draw(r, "tags"),
			Sizes: rapid.SliceOfN(rapid.Int(), 1, 50).Draw(r, "sizes"),
		}
		b := blobtest.NewBucket(noon)
		ref, err := blob.Put(t.Context(), b, noon, "things", doc)
		if err != nil {
			r.Fatal(err)
		}
		got, err := blob.Get[document](t.Context(), b, ref)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(doc, got); diff != "" {
			r.Fatal(diff)
		}
		again, _, err := blob.Encode("things", got)
		if err != nil || again != ref {
			r.Fatalf("one document has the references %v and %v (%v)", ref, again, err)
		}
	})
}

// Put keeps a document younger than half the retention, and does not rewrite a young one.
func TestPutRefreshesOldDocuments(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration
		fresh bool
	}{
		{"immediately", 0, false},
		{"just under half of the retention", blob.Retention/2 - time.Second, false},
		{"half of the retention", blob.Retention / 2, true},
		{"after the retention", 3 * blob.Retention, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := blobtest.NewBucket(noon)
			doc := document{Name: "x"}
			first, err := blob.Put(t.Context(), b, b.Now, "things", doc)
			if err != nil {
				t.Fatal(err)
			}
			b.Now = b.Now.Add(test.after)
			second, err := blob.Put(t.Context(), b, b.Now, "things", doc)
			if err != nil || first != second {
				t.Fatalf("%v, then %v (%v)", first, second, err)
			}
			written, err := b.LastWritten(t.Context(), first.Key())
			if err != nil {
				t.Fatal(err)
			}
			if fresh := test.after > 0 && written.Equal(b.Now); fresh != test.fresh {
				t.Errorf("written at %s, now %s: written again: %t, want %t", written, b.Now, fresh, test.fresh)
			}
		})
	}
}

func TestPutFails(t *testing.T) {
	for name, faults := range map[string]memblob.Faults{
		"check fails": {FailWritten: 1}, "write fails": {FailPut: 1}, "response lost": {LosePutAnswer: 1},
	} {
		b := blobtest.NewBucket(noon)
		b.SetFaults(faults)
		ref, err := blob.Put(t.Context(), b, b.Now, "things", document{Name: "x"})
		if !fault.Is(err, fault.Retry, fault.Unknown) || !ref.IsZero() {
			t.Errorf("%s: %v, %v", name, ref, err)
		}
		ref, err = blob.PutNew(t.Context(), b, "things", document{Name: "x"})
		switch {
		case name == "check fails" && (err != nil || ref.IsZero()):
			t.Errorf("a new document is not checked for: %v, %v", ref, err)
		case name != "check fails" && (!fault.Is(err, fault.Retry, fault.Unknown) || !ref.IsZero()):
			t.Errorf("%s, new document: %v, %v", name, ref, err)
		}
	}
	if _, err := blob.Put(t.Context(), blobtest.NewBucket(noon), noon, "things", func() {}); !fault.Is(err, fault.Bug) {
		t.Errorf("document that is not JSON: %v", err)
	}
}

func TestGetVerifies(t *testing.T) {
	b := blobtest.NewBucket(noon)
	good, err := blob.Put(t.Context(), b, noon, "things", document{Name: "x", Sizes: []int{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	spoilt := func(spoil func(*event.Ref)) event.Ref {
		ref := good
		spoil(&ref)
		return ref
	}
	swapped := spoilt(func(r *event.Ref) { r.Digest = event.DigestOf([]byte("another")) })
	data, err := b.Get(t.Context(), good.Key())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), swapped.Key(), data); err != nil {
		t.Fatal(err)
	}
	raw := []byte(`{"name":"not compressed"}`)
	plain := event.Ref{Kind: "things", Digest: event.DigestOf(raw), Size: len(raw)}
	if err := b.Put(t.Context(), plain.Key(), raw); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		ref  event.Ref
		want fault.Kind
	}{
		{"stored document", good, ""},
		{"wrong size", spoilt(func(r *event.Ref) { r.Size++ }), fault.Poison},
		{"wrong bytes", swapped, fault.Poison},
		{"missing object", spoilt(func(r *event.Ref) { r.Digest = event.DigestOf([]byte("none")) }), fault.Retry},
		{"empty reference", event.Ref{}, fault.Poison},
		{"size beyond the limit", spoilt(func(r *event.Ref) { r.Size = blob.MaxObject + 1 }), fault.Poison},
		{"not compressed", plain, fault.Poison},
		{"not JSON", storeText(t, b, []byte("{")), fault.Poison},
		{"two JSON values", storeText(t, b, []byte(`{"name":"a"}{"name":"b"}`)), fault.Poison},
		{"wrong type", storeText(t, b, []byte(`{"name":7}`)), fault.Poison},
		{"unknown field", storeText(t, b, []byte(`{"name":"x","new":1}`)), ""},
	} {
		doc, err := blob.Get[document](t.Context(), b, test.ref)
		if got := fault.KindOf(err); got != test.want {
			t.Errorf("%s: %q (%v), want %q", test.name, got, err, test.want)
		}
		if want := test.want == ""; want != (doc.Name == "x") {
			t.Errorf("%s: document = %+v", test.name, doc)
		}
	}
	b.SetFaults(memblob.Faults{Corrupt: 1})
	if _, err := blob.Get[document](t.Context(), b, good); !fault.Is(err, fault.Poison) {
		t.Errorf("flipped bit: %v, want poison", err)
	}
	b.SetFaults(memblob.Faults{FailGet: 1})
	if _, err := blob.Get[document](t.Context(), b, good); !fault.Is(err, fault.Retry) {
		t.Errorf("failed call: %v, want retry", err)
	}
}

// A document that was copied from the store can be decoded, compressed or not.
func TestDecodeFile(t *testing.T) {
	want := document{Name: "x", Sizes: []int{1, 2}}
	_, data, err := blob.Encode("things", want)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"packed": data, "unpacked": text} {
		var got document
		if err := blob.DecodeFile("x.json", data, &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, data := range map[string][]byte{"truncated": data[:len(data)-3], "empty": nil, "wrong type": []byte(`{"name":7}`)} {
		var got document
		if err := blob.DecodeFile("x.json", data, &got); !fault.Is(err, fault.Poison) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A small object must not become huge when decoded: a frame that declares a gigabyte is not decompressed.
func TestDecodeLimitsSize(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0} // magic number and header: one segment, its size in eight bytes
	frame = binary.LittleEndian.AppendUint64(frame, 1<<30)
	const runs = 1 << 13
	for i := range runs {
		last := uint32(0)
		if i == runs-1 {
			last = 1
		}
		// A block of 128 KiB of one repeated byte.
		header := uint32(128<<10)<<3 | 1<<1 | last
		frame = append(frame, byte(header), byte(header>>8), byte(header>>16), ' ')
	}
	ref := event.Ref{Kind: "things", Digest: event.DigestOf(frame), Size: len(frame)}
	var doc json.RawMessage
	err := blob.Decode(ref, frame, &doc)
	if !fault.Is(err, fault.Poison) || !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		t.Errorf("%d bytes that decompress to a gigabyte: %v", len(frame), err)
	}
}

func TestPointer(t *testing.T) {
	b := blobtest.NewBucket(noon)
	if _, err := blob.GetLatest(t.Context(), b, "things"); !fault.Is(err, fault.Missing) {
		t.Errorf("before the first write: %v, want missing", err)
	}
	for _, name := range []string{"first", "second"} {
		ref, err := blob.Put(t.Context(), b, noon, "things", document{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := blob.SetLatest(t.Context(), b, ref); err != nil {
			t.Fatal(err)
		}
		got, err := blob.GetLatest(t.Context(), b, "things")
		if err != nil || got != ref {
			t.Errorf("%s: %v (%v), want %v", name, got, err, ref)
		}
	}
	for _, text := range []string{"{", `{"kind":"things"}`} {
		if err := b.Put(t.Context(), "things/latest", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if ref, err := blob.GetLatest(t.Context(), b, "things"); err == nil {
			t.Errorf("GetLatest with the invalid pointer %s = %v", text, ref)
		}
	}
}
