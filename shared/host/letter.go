package host

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// The attributes that every dead letter of a host has: the error's text and kind, the
// service that parked it, and when, in RFC 3339.
const (
	ReasonAttribute  = "reason"
	KindAttribute    = "kind"
	ServiceAttribute = "service"
	ParkedAttribute  = "parked"
)

// The attributes of a dead letter whose body is not the message's own.
const (
	// EncodingAttribute is "base64" where the bytes are no text that SQS carries.
	EncodingAttribute = "encoding"
	// BytesAttribute and DigestAttribute are the length and the SHA-256 of a
	// message of which only the beginning could be kept.
	BytesAttribute  = "bytes"
	DigestAttribute = "sha256"
)

const (
	// reasonLength keeps a reason within what a message attribute is read for.
	reasonLength = 1024
	// nameLength does so for what a stranger wrote into source and type.
	nameLength = 256
)

// park sends a dead letter, whatever the message is.
func (w Worker) park(ctx context.Context, m queue.Message, v Verdict) error {
	letter := w.letter(m, v)
	err := w.Dead.Send(ctx, fit(letter, queue.MaxDead))
	if len(m.Body) > queue.MaxBody/2 && fault.Is(err, fault.Invalid) {
		// A queue may be set to take less than SQS can.
		err = w.Dead.Send(ctx, fit(letter, queue.MaxBody))
	}
	return err
}

// letter is the dead letter of a message.
func (w Worker) letter(m queue.Message, v Verdict) queue.Outgoing {
	return queue.Outgoing{
		Source: first(m.Attributes[queue.SourceAttribute], nameLength), Type: first(m.Attributes[queue.TypeAttribute], nameLength),
		Body: m.Body, Dead: true,
		Attributes: map[string]string{
			ReasonAttribute: first(v.Reason, reasonLength), KindAttribute: string(v.Kind), ServiceAttribute: w.Service,
			ParkedAttribute: w.Now().UTC().Format(time.RFC3339),
		},
	}
}

// fit makes a dead letter one that a queue takes: encoded where it is no text,
// and cut where it is larger than the limit, which the attributes say.
func fit(letter queue.Outgoing, limit int) queue.Outgoing {
	encoded := !queue.Text(letter.Body)
	if encoded {
		letter = saying(letter, EncodingAttribute, "base64")
	}
	if size(letter, encoded) > limit {
		sum := sha256.Sum256(letter.Body)
		letter = saying(letter, DigestAttribute, hex.EncodeToString(sum[:]))
		letter = saying(letter, BytesAttribute, strconv.Itoa(len(letter.Body)))
		room := limit - (letter.Size() - len(letter.Body))
		if encoded {
			room = base64.StdEncoding.DecodedLen(room / 4 * 4)
		}
		letter.Body = letter.Body[:room]
		for !encoded && !utf8.Valid(letter.Body) {
			letter.Body = letter.Body[:len(letter.Body)-1]
		}
	}
	if encoded {
		letter.Body = []byte(base64.StdEncoding.EncodeToString(letter.Body))
		if len(letter.Body) == 0 {
			// No queue takes an empty body. This decodes into nothing, too.
			letter.Body = []byte("\n")
		}
	}
	return letter
}

// size is the letter's size once it is encoded.
func size(letter queue.Outgoing, encoded bool) int {
	if encoded {
		return letter.Size() - len(letter.Body) + base64.StdEncoding.EncodedLen(len(letter.Body))
	}
	return letter.Size()
}

// saying is the letter with one attribute more.
func saying(letter queue.Outgoing, name, value string) queue.Outgoing {
	letter.Attributes = maps.Clone(letter.Attributes)
	letter.Attributes[name] = value
	return letter
}

// first is the beginning of a text.
func first(text string, length int) string {
	return text[:min(len(text), length)]
}
