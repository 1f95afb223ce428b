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
	MovedAtAttribute = "parked"
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
	// maxReasonLength keeps a reason within what a message attribute is read for.
	maxReasonLength = 1024
	// maxNameLength does so for what a stranger wrote into source and type.
	maxNameLength = 256
)

// sendDeadLetter sends a dead letter, whatever the message is.
func (w Worker) sendDeadLetter(ctx context.Context, m queue.Message, v MessageDisposition) error {
	letter := w.newDeadLetter(m, v)
	err := w.Dead.Send(ctx, fitToLimit(letter, queue.MaxDeadLetter))
	if len(m.Body) > queue.MaxBody/2 && fault.Is(err, fault.Invalid) {
		// A queue may be set to take less than SQS can.
		err = w.Dead.Send(ctx, fitToLimit(letter, queue.MaxBody))
	}
	return err
}

// newDeadLetter is the dead letter of a message.
func (w Worker) newDeadLetter(m queue.Message, v MessageDisposition) queue.Outgoing {
	return queue.Outgoing{
		Source: truncateText(m.Attributes[queue.SourceAttribute], maxNameLength), Type: truncateText(m.Attributes[queue.TypeAttribute], maxNameLength),
		Body: m.Body, IsDeadLetter: true,
		Attributes: map[string]string{
			ReasonAttribute: truncateText(v.Reason, maxReasonLength), KindAttribute: string(v.Kind), ServiceAttribute: w.Service,
			MovedAtAttribute: w.Now().UTC().Format(time.RFC3339),
		},
	}
}

// fitToLimit makes a dead letter one that a queue takes: encoded where it is no text,
// and cut where it is larger than the limit, which the attributes say.
func fitToLimit(letter queue.Outgoing, limit int) queue.Outgoing {
	encoded := !queue.IsSendableText(letter.Body)
	if encoded {
		letter = withAttribute(letter, EncodingAttribute, "base64")
	}
	if encodedSize(letter, encoded) > limit {
		sum := sha256.Sum256(letter.Body)
		letter = withAttribute(letter, DigestAttribute, hex.EncodeToString(sum[:]))
		letter = withAttribute(letter, BytesAttribute, strconv.Itoa(len(letter.Body)))
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

// encodedSize is the letter's size once it is encoded.
func encodedSize(letter queue.Outgoing, encoded bool) int {
	if encoded {
		return letter.Size() - len(letter.Body) + base64.StdEncoding.EncodedLen(len(letter.Body))
	}
	return letter.Size()
}

// withAttribute is the letter with one attribute more.
func withAttribute(letter queue.Outgoing, name, value string) queue.Outgoing {
	letter.Attributes = maps.Clone(letter.Attributes)
	letter.Attributes[name] = value
	return letter
}

// truncateText is the beginning of a text.
func truncateText(text string, length int) string {
	return text[:min(len(text), length)]
}
