package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Digest is the SHA-256 of a stored document, as 64 lower-case hex digits.
type Digest string

// DigestOf hashes the bytes as they are stored.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}

// IsValid reports whether the digest is well formed.
func (d Digest) IsValid() bool {
	if len(d) != hex.EncodedLen(sha256.Size) {
		return false
	}
	return strings.Trim(string(d), "0123456789abcdef") == ""
}

// ShortText is the first twelve digits, for people.
func (d Digest) ShortText() string {
	if len(d) < 12 {
		return string(d)
	}
	return string(d[:12])
}

// Ref names a stored document: the folder of its kind, its digest and its size
// in bytes as stored. It is the claim check that travels in a message.
type Ref struct {
	Kind   string `json:"kind"`
	Digest Digest `json:"digest"`
	Size   int    `json:"size"`
}

// Key is where the document lies.
func (r Ref) Key() string { return r.Kind + "/" + string(r.Digest) }

// IsZero reports whether the reference names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// The folders of documents that messages refer to.
const (
	IntentKind    = "intents"
	BatchKind     = "batches"
	SnapshotKind  = "snapshots"
	PlanKind      = "plans"
	CatalogueKind = "catalogues"
)

// ValidateKind reports a reference that cannot be followed, or that names a document of another kind
// than the field that it stands in.
func (r Ref) ValidateKind(kind string) error {
	if r.Kind != kind {
		return fault.F("checking a reference", fault.Poison, "it is of kind %q, and this field has one of kind %q", r.Kind, kind)
	}
	return r.Validate()
}

// Validate reports a reference that cannot be followed.
func (r Ref) Validate() error {
	if r.Kind == "" || strings.ContainsAny(r.Kind, "/.") {
		return fault.F("checking a reference", fault.Poison, "kind %q is not a folder name", r.Kind)
	}
	if !r.Digest.IsValid() {
		return fault.F("checking a reference", fault.Poison, "digest %q is not 64 hex digits", r.Digest)
	}
	if r.Size <= 0 {
		return fault.F("checking a reference", fault.Poison, "size %d is not positive", r.Size)
	}
	return nil
}
