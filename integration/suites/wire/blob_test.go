package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/blob/s3blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// TestBlobSuite runs the conformance suite on the S3 adapter.
func TestBlobSuite(t *testing.T) {
	for _, prefix := range []string{"", "clusters/a"} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			blobtest.Run(t, func(t *testing.T) blobtest.Subject {
				w := start(t)
				return blobtest.Subject{
					Store: s3blob.New(productionConfig(t, w.Server), fakeaws.Bucket, prefix, "JOIST_BUCKET"),
					Now:   w.clock.Now, Advance: w.clock.Advance,
				}
			})
		})
	}
}

func TestKeyPrefixes(t *testing.T) {
	w := start(t)
	a := s3blob.New(w.Config(), fakeaws.Bucket, "clusters/a/", "JOIST_BUCKET")
	b := s3blob.New(w.Config(), fakeaws.Bucket, "clusters/b", "JOIST_BUCKET")
	if err := a.Put(t.Context(), "plans/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), "plans/1"); !fault.Is(err, fault.Missing) {
		t.Errorf("reading with another prefix returned %v", err)
	}
	if keys := w.blobs.ListKeys(); len(keys) != 1 || keys[0] != "clusters/a/plans/1" {
		t.Errorf("the bucket has %q", keys)
	}
}

func TestBlobErrors(t *testing.T) {
	w := start(t)
	gone := s3blob.New(w.Config(), "gone", "", "JOIST_BUCKET")
	if err := gone.Put(t.Context(), "a", []byte("x")); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.FindHint(err), "JOIST_BUCKET") {
		t.Errorf("a missing bucket returned %v", err)
	}
	store := s3blob.New(productionConfig(t, w.Server), fakeaws.Bucket, "", "JOIST_BUCKET")
	w.blobs.SetFaults(memblob.Faults{LosePutAnswer: 1, FailGet: 1})
	if err := store.Put(t.Context(), "a", []byte("x")); !fault.Is(err, fault.Unknown) {
		t.Errorf("a lost response returned %v of kind %q", err, fault.KindOf(err))
	}
	if _, err := store.Get(t.Context(), "a"); !fault.Is(err, fault.Retry) {
		t.Errorf("a failed read returned %v of kind %q", err, fault.KindOf(err))
	}
	w.blobs.SetFaults(memblob.Faults{SlowDown: 1})
	slow := map[fault.Kind]bool{}
	for range 40 {
		_, err := store.Get(t.Context(), "a")
		slow[fault.KindOf(err)] = true
	}
	if !slow[fault.Throttled] || slow[fault.Retry] {
		t.Errorf("a burst of 503 Slow Down returned the kinds %v", slow)
	}
	w.blobs.SetFaults(memblob.Faults{})
	if at, err := store.LastWritten(t.Context(), "a"); err != nil || w.clock.Now().Sub(at) > 5*time.Second {
		t.Errorf("last written at %s, %v", at, err)
	}
}
