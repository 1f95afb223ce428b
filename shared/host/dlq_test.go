package host_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// narrow is a DLQ with a lower size limit than the SQS maximum.
type narrow struct{ dlqSender }

func (n narrow) Send(ctx context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		if m.Size() > queue.MaxBody {
			return fault.F("sending", fault.Invalid, "InvalidParameterValue: too long")
		}
	}
	return n.dlqSender.Send(ctx, messages...)
}

// A poison message of any bytes and any size is moved to the DLQ at once, and its DLQ message keeps at least the
// beginning of the body.
func TestPoisonMovesToDLQ(t *testing.T) {
	x := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, c := range []struct {
		name    string
		body    []byte
		narrow  bool
		encoded bool
		cut     bool
	}{
		{name: "small", body: x(10)},
		{name: "257 KiB", body: x(257 << 10)},
		{name: "almost 1 MiB", body: x(1<<20 - 1024)},
		{name: "1 MiB", body: x(1 << 20), cut: true},
		{name: "1 MiB of large characters", body: []byte(strings.Repeat("€", 1<<20/3)), cut: true},
		{name: "1 MiB of large characters, one byte later", body: []byte("x" + strings.Repeat("€", 1<<20/3)), cut: true},
		{name: "1 MiB of large characters, two bytes later", body: []byte("xx" + strings.Repeat("€", 1<<20/3-1)), cut: true},
		{name: "800 KiB of illegal characters", body: make([]byte, 800<<10), encoded: true, cut: true},
		{name: "empty", body: []byte{}, encoded: true},
		{name: "a control character", body: []byte("a\x01b"), encoded: true},
		{name: "invalid UTF-8", body: []byte("a\xff"), encoded: true},
		{name: "700 KiB of illegal characters", body: make([]byte, 700<<10), encoded: true},
		{name: "1 MiB of illegal characters", body: make([]byte, 1<<20), encoded: true, cut: true},
		{name: "200 KiB, DLQ limit 256 KiB", body: x(200 << 10), narrow: true},
		{name: "1 MiB, DLQ limit 256 KiB", body: x(1 << 20), narrow: true, cut: true},
		{name: "256 KiB of illegal characters, DLQ limit 256 KiB", body: make([]byte, 256<<10), narrow: true, encoded: true, cut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			w := b.worker(returns(fault.F("reading", fault.Poison, "bad")))
			if c.narrow {
				w.Dead = narrow{dlqSender{b}}
			}
			m := b.deliver(t, c.body)
			m.Attributes = map[string]string{"source": strings.Repeat("s", 2000), "type": "t"}
			if line := w.ProcessMessage(t.Context(), m); line.DispositionErr != nil || line.Disposition.Action != host.MoveToDLQ {
				t.Fatalf("%+v", line)
			}
			if in, _ := b.left(t); in != 0 {
				t.Errorf("%d messages in the queue", in)
			}
			dead, err := b.dead.Receive(t.Context(), 10, 0, time.Minute)
			if err != nil || len(dead) != 1 {
				t.Fatalf("%d DLQ messages: %v", len(dead), err)
			}
			a, body := dead[0].Attributes, dead[0].Body
			if a["reason"] != "reading: bad" || (a[host.EncodingAttribute] == "base64") != c.encoded || (a[host.DigestAttribute] != "") != c.cut {
				t.Errorf("attributes of the DLQ message: %v", a)
			}
			if c.encoded {
				if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
					t.Fatal(err)
				}
			}
			checkKept(t, c.body, body, a, c.cut)
			limit := queue.MaxDeadLetter
			if c.narrow {
				limit = queue.MaxBody
			} else if sends := len(b.log()) - 1; sends != 1 {
				t.Errorf("%d sends, want one that the queue accepts", sends)
			}
			if c.cut && b.sent < limit-3 {
				t.Errorf("the DLQ message has %d bytes, want all of %d except part of a character", b.sent, limit)
			}
		})
	}
}

// A DLQ message of exactly the limit is not cut.
func TestDLQMessageOfTheLimit(t *testing.T) {
	b := newBench()
	w := b.worker(returns(fault.F("reading", fault.Poison, "bad")))
	w.ProcessMessage(t.Context(), b.deliver(t, []byte("x")))
	body := bytes.Repeat([]byte("x"), queue.MaxDeadLetter-b.sent+1)
	w.ProcessMessage(t.Context(), b.deliver(t, body))
	dead, err := b.dead.Receive(t.Context(), 10, 0, time.Minute)
	if err != nil || len(dead) != 2 {
		t.Fatalf("%d DLQ messages: %v", len(dead), err)
	}
	if kept := max(len(dead[0].Body), len(dead[1].Body)); kept != len(body) || b.sent != queue.MaxDeadLetter {
		t.Errorf("the DLQ message has %d of %d bytes, and %d with attributes", kept, len(body), b.sent)
	}
}

// checkKept fails unless the whole body was kept, or a large part of it with the length and digest.
func checkKept(t *testing.T, was, kept []byte, attributes map[string]string, cut bool) {
	t.Helper()
	if !cut {
		if !bytes.Equal(was, kept) {
			t.Errorf("the DLQ message has %[2]d of %[1]d bytes", len(was), len(kept))
		}
		return
	}
	sum := sha256.Sum256(was)
	if !bytes.HasPrefix(was, kept) || len(kept) < len(was)/6 || utf8.Valid(was) && !utf8.Valid(kept) {
		t.Errorf("the DLQ message has %[2]d of %[1]d bytes", len(was), len(kept))
	}
	if attributes[host.BytesAttribute] != strconv.Itoa(len(was)) || attributes[host.DigestAttribute] != hex.EncodeToString(sum[:]) {
		t.Errorf("attributes of the DLQ message: %v", attributes)
	}
}
