package blob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// MaxDocument is the maximum size of a decompressed document in bytes. A batch of 100,000 different pods needs less
// than a third of it.
const MaxDocument = 512 << 20

// encoder is created once, because its buffers are larger than most documents. EncodeAll is safe for concurrent use.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
})

// Encode compresses doc and returns its reference and bytes. The same document always gives the same bytes:
// encoding/json sorts map keys, and the compressor uses one goroutine.
func Encode(kind string, doc any) (event.Ref, []byte, error) {
	compress, err := encoder()
	if err != nil {
		return event.Ref{}, nil, fault.E("preparing compression", fault.Bug, err)
	}
	out := compressed{encoder: compress}
	if err := json.NewEncoder(&out).Encode(doc); err != nil {
		return event.Ref{}, nil, fault.E("encoding a document of "+kind, fault.Bug, err)
	}
	return event.Ref{Kind: kind, Digest: event.DigestOf(out.data), Size: len(out.data)}, out.data, nil
}

// compressed compresses the text of a document from the buffer of the JSON encoder, which json.Marshal would copy first. The
// text of a large plan has more than 100 MB.
type compressed struct {
	encoder *zstd.Encoder
	data    []byte
}

// Write compresses text without the newline that ends it. The encoder writes a document in one call.
func (c *compressed) Write(text []byte) (int, error) {
	c.data = c.encoder.EncodeAll(bytes.TrimSuffix(text, []byte("\n")), c.data)
	return len(text), nil
}

// ErrTooLarge is wrapped in Put's error for a document above MaxObject after compression.
var ErrTooLarge = errors.New("the document is too large")

// Put stores doc under its digest. It does not write an object again that is younger than half its retention, so a
// quiet cluster causes no writes.
func Put(ctx context.Context, store Store, now time.Time, kind string, doc any) (event.Ref, error) {
	ref, data, err := encodeWithinLimit(kind, doc)
	if err != nil {
		return event.Ref{}, err
	}
	written, err := store.LastWritten(ctx, ref.Key())
	switch {
	case err == nil && now.Sub(written) < Retention/2:
		return ref, nil
	case err != nil && !fault.Is(err, fault.Missing):
		return event.Ref{}, fmt.Errorf("checking for %s: %w", ref.Key(), err)
	}
	return putEncoded(ctx, store, ref, data)
}

// PutNew is Put for a document that differs from all stored ones, such as a batch: it does not ask first whether it is stored.
func PutNew(ctx context.Context, store Store, kind string, doc any) (event.Ref, error) {
	ref, data, err := encodeWithinLimit(kind, doc)
	if err != nil {
		return event.Ref{}, err
	}
	return putEncoded(ctx, store, ref, data)
}

// encodeWithinLimit is Encode with an error for a document that is too large to store.
func encodeWithinLimit(kind string, doc any) (event.Ref, []byte, error) {
	ref, data, err := Encode(kind, doc)
	if err != nil {
		return event.Ref{}, nil, err
	}
	if len(data) > MaxObject {
		return event.Ref{}, nil, fault.E("storing "+ref.Key(), fault.Bug, fmt.Errorf("%d bytes exceed the limit of %d: %w", len(data), MaxObject, ErrTooLarge))
	}
	return ref, data, nil
}

func putEncoded(ctx context.Context, store Store, ref event.Ref, data []byte) (event.Ref, error) {
	if err := store.Put(ctx, ref.Key(), data); err != nil {
		return event.Ref{}, fmt.Errorf("storing %s: %w", ref.Key(), err)
	}
	return ref, nil
}

// PutAll stores documents of one kind, up to parallel at the same time; zero means one. It returns their references.
func PutAll[T any](ctx context.Context, store Store, now time.Time, kind string, docs []T, parallel int) ([]event.Ref, error) {
	refs := make([]event.Ref, len(docs))
	err := CallAll(ctx, len(docs), parallel, func(ctx context.Context, i int) (err error) {
		refs[i], err = Put(ctx, store, now, kind, docs[i])
		return err
	})
	return refs, err
}

// Get reads a document with its parts and verifies it. A missing object is Retry, because the writer may be about to write
// it again; bytes that do not match the digest or do not decode are Poison.
func Get[T any](ctx context.Context, store Store, ref event.Ref) (T, error) {
	return GetCached[T](ctx, store, ref, nil)
}

// GetCached is Get, but reads only the parts that are not in the cache.
func GetCached[T any](ctx context.Context, store Store, ref event.Ref, cache *PartCache) (T, error) {
	var doc T
	err := getInto(ctx, store, ref, &doc)
	if err == nil {
		err = joinParts(ctx, store, cache, &doc)
	}
	if err != nil {
		var none T
		return none, err
	}
	return doc, nil
}

// getInto reads an object, verifies it and decodes it into doc.
func getInto(ctx context.Context, store Store, ref event.Ref, doc any) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	if ref.Size > MaxObject {
		return fault.F("reading "+ref.Key(), fault.Poison, "%d bytes exceed the limit of %d", ref.Size, MaxObject)
	}
	data, err := store.Get(ctx, ref.Key())
	if fault.Is(err, fault.Missing) {
		return fault.E("reading "+ref.Key(), fault.Retry, err)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", ref.Key(), err)
	}
	return Decode(ref, data, doc)
}

// Decode verifies data against ref and decodes it into doc, without its parts. It rejects more than one JSON value and values of the
// wrong type, but ignores unknown fields.
func Decode(ref event.Ref, data []byte, doc any) error {
	if got := event.DigestOf(data); got != ref.Digest || len(data) != ref.Size {
		return fault.F("verifying "+ref.Key(), fault.Poison, "the object has digest %s and %d bytes", got, len(data))
	}
	text, err := decompress(ref.Key(), data)
	if err != nil {
		return err
	}
	return decodeJSON(ref.Key(), text, doc)
}

// DecodeFile decodes a document that was copied from the store, compressed or not, into doc. It cannot verify the
// content. Errors are Poison and contain name; ErrParts is wrapped if the document is not complete without its parts.
func DecodeFile(name string, data []byte, doc any) error {
	text := data
	if bytes.HasPrefix(data, frameMagic) {
		var err error
		if text, err = decompress(name, data); err != nil {
			return err
		}
	}
	if err := decodeJSON(name, text, doc); err != nil {
		return err
	}
	if whole, ok := doc.(Composed); ok {
		if refs, err := whole.PartRefs(); err != nil || len(refs) > 0 {
			return fault.E("decoding "+name, fault.Poison, errors.Join(ErrParts, err))
		}
	}
	return nil
}

// ErrParts is wrapped in DecodeFile's error for a document that needs its parts.
var ErrParts = errors.New("the document refers to other objects in the bucket")

// frameMagic is the prefix of zstd-compressed data.
var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

func decompress(name string, data []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDocument))
	if err != nil {
		return nil, fault.E("preparing decompression", fault.Bug, err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fault.E("decompressing "+name, fault.Poison, err)
	}
	return text, nil
}

func decodeJSON(name string, text []byte, doc any) error {
	if err := json.Unmarshal(text, doc); err != nil {
		return fault.E("decoding "+name, fault.Poison, err)
	}
	return nil
}
