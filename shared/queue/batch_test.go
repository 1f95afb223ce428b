package queue

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// All messages are in the batches, in order, and no batch exceeds a limit.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 1000
		var messages []Outgoing
		largest := rapid.SampledFrom([]int{5, 900}).Draw(t, "largest")
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, largest), 0, 50).Draw(t, "sizes") {
			messages = append(messages, Outgoing{Source: "s", Type: "t", Body: bytes.Repeat([]byte("x"), n)})
		}
		batches, err := SplitBatches(limit, messages...)
		if err != nil {
			t.Fatal(err)
		}
		var all []Outgoing
		for _, batch := range batches {
			total := 0
			for _, m := range batch {
				total += m.Size()
			}
			if len(batch) == 0 || len(batch) > MaxBatch || total > limit {
				t.Fatalf("batch of %d messages and %d bytes exceeds a limit", len(batch), total)
			}
			all = append(all, batch...)
		}
		if diff := cmp.Diff(messages, all); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestBatchesRefuse(t *testing.T) {
	for name, body := range map[string]string{
		"empty": "", "beyond MaxBody": strings.Repeat("x", MaxBody+1), "not UTF-8": "a\xff", "control character": "a\x01",
		"not a character": "a\uFFFE", "beyond the limit of the call": strings.Repeat("x", 2000),
	} {
		if _, err := SplitBatches(1000, Outgoing{Type: "t", Body: []byte(body)}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessageAttributes(t *testing.T) {
	m := Outgoing{Type: "t.v1", Attributes: map[string]string{"reason": "byte \x00 of\n\xff", "kind": ""}}
	want := map[string]string{"type": "t.v1", "reason": "byte \uFFFD of\n\uFFFD"}
	if diff := cmp.Diff(want, m.MessageAttributes()); diff != "" {
		t.Error(diff)
	}
}

// A DLQ message may have exactly the size that SQS accepts.
func TestDeadLettersMayBeLarge(t *testing.T) {
	letter := Outgoing{Type: "t", IsDeadLetter: true, Attributes: map[string]string{"reason": "too large"}}
	letter.Body = bytes.Repeat([]byte("x"), MaxDeadLetter-letter.Size())
	if batches, err := SplitBatches(1<<20, letter); err != nil || len(batches) != 1 {
		t.Errorf("%d batches: %v", len(batches), err)
	}
	letter.Body = append(letter.Body, 'x')
	if err := letter.Validate(); !fault.Is(err, fault.Invalid) {
		t.Errorf("one byte above the limit: %v", err)
	}
}

func TestText(t *testing.T) {
	for body, want := range map[string]bool{"": false, "a\xff": false, "a\x01": false, "a\uFFFE": false, "a\t\u00e9": true} {
		if IsSendableText([]byte(body)) != want {
			t.Errorf("%q: %t", body, !want)
		}
	}
}
