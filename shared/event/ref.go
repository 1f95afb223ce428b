package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// Digest is the SHA-256 of a stored document, as 64 lower-case hex digits.
type Digest string

// DigestOf returns the digest of the bytes as they are stored.
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

// ShortText returns the first twelve digits, for people.
func (d Digest) ShortText() string {
	if len(d) < 12 {
		return string(d)
	}
	return string(d[:12])
}

// Ref refers to a stored document: the folder of its kind, its digest and its stored size in bytes. Messages carry it
// instead of the document.
type Ref struct {
	Kind   string `json:"kind"`
	Digest Digest `json:"digest"`
	Size   int    `json:"size"`
}

// Key returns the document's key in the store.
func (r Ref) Key() string { return r.Kind + "/" + string(r.Digest) }

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r == Ref{} }

// The folders of documents that messages refer to.
const (
	IntentKind    = "intents"
	BatchKind     = "batches"
	SnapshotKind  = "snapshots"
	NodesKind     = "nodes"
	PlanKind      = "plans"
	CatalogueKind = "catalogues"
)

// ValidateKind returns a Poison error if the reference is malformed or has another kind.
func (r Ref) ValidateKind(kind string) error {
	if r.Kind != kind {
		return fault.F("checking a reference", fault.Poison, "it is of kind %q, and this field has one of kind %q", r.Kind, kind)
	}
	return r.Validate()
}

// Validate returns a Poison error if the reference is malformed. The kind may have only lower-case letters and hyphens.
func (r Ref) Validate() error {
	if r.Kind == "" || strings.ContainsFunc(r.Kind, func(c rune) bool { return (c < 'a' || c > 'z') && c != '-' }) {
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
