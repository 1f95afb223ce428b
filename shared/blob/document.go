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

// MaxDocument is the largest document accepted once decompressed, in bytes. A
// batch of 100,000 unequal pods stays under a third of it.
const MaxDocument = 512 << 20

// encoder is made once: its buffers are larger than most documents, and
// EncodeAll may be called from everywhere.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
})

// Encode compresses doc into the bytes that are stored, and names them. The
// same document always gives the same bytes: encoding/json sorts map keys, and
// the compressor runs alone.
func Encode(kind string, doc any) (event.Ref, []byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return event.Ref{}, nil, fault.E("encoding a document of "+kind, fault.Bug, err)
	}
	compress, err := encoder()
	if err != nil {
		return event.Ref{}, nil, fault.E("preparing compression", fault.Bug, err)
	}
	data := compress.EncodeAll(text, nil)
	return event.Ref{Kind: kind, Digest: event.DigestOf(data), Size: len(data)}, data, nil
}

// ErrTooLarge is in the errors of Put for a document that is larger than MaxObject once
// it is compressed.
var ErrTooLarge = errors.New("the document is too large")

// Put stores doc under its digest. An object that is already there and younger
// than half its retention is left alone, so that a quiet cluster writes nothing.
func Put(ctx context.Context, store Store, now time.Time, kind string, doc any) (event.Ref, error) {
	ref, data, err := Encode(kind, doc)
	if err != nil {
		return event.Ref{}, err
	}
	if len(data) > MaxObject {
		return event.Ref{}, fault.E("storing "+ref.Key(), fault.Bug, fmt.Errorf("%d bytes exceed the limit of %d: %w", len(data), MaxObject, ErrTooLarge))
	}
	written, err := store.LastWritten(ctx, ref.Key())
	switch {
	case err == nil && now.Sub(written) < Retention/2:
		return ref, nil
	case err != nil && !fault.Is(err, fault.Missing):
		return event.Ref{}, fmt.Errorf("looking for %s: %w", ref.Key(), err)
	}
	if err := store.Put(ctx, ref.Key(), data); err != nil {
		return event.Ref{}, fmt.Errorf("storing %s: %w", ref.Key(), err)
	}
	return ref, nil
}

// Get reads the document that ref names and verifies it. A missing object is a
// Retry, for the writer may be about to write it again; bytes that do not match
// the digest, or that do not decode, are Poison.
func Get[T any](ctx context.Context, store Store, ref event.Ref) (T, error) {
	var doc T
	if err := ref.Validate(); err != nil {
		return doc, err
	}
	if ref.Size > MaxObject {
		return doc, fault.F("reading "+ref.Key(), fault.Poison, "%d bytes exceed the limit of %d", ref.Size, MaxObject)
	}
	data, err := store.Get(ctx, ref.Key())
	if fault.Is(err, fault.Missing) {
		return doc, fault.E("reading "+ref.Key(), fault.Retry, err)
	}
	if err != nil {
		return doc, fmt.Errorf("reading %s: %w", ref.Key(), err)
	}
	if err := Decode(ref, data, &doc); err != nil {
		var none T
		return none, err
	}
	return doc, nil
}

// Decode verifies data against ref and fills doc from it. More than one JSON
// value is refused, and so is one that does not fit; unknown fields are not.
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

// DecodeFile fills doc from a document that somebody has taken out of the store, as it was
// stored or unpacked since. Nothing says whether it is what was written; name is how
// errors, which are Poison, call it.
func DecodeFile(name string, data []byte, doc any) error {
	if !bytes.HasPrefix(data, frameMagic) {
		return decodeJSON(name, data, doc)
	}
	text, err := decompress(name, data)
	if err != nil {
		return err
	}
	return decodeJSON(name, text, doc)
}

// frameMagic is how what zstd compressed begins.
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
