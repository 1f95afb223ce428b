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

// The attributes of every DLQ message: the error's text and kind, the service that moved the message, and the time in
// RFC 3339.
const (
	ReasonAttribute  = "reason"
	KindAttribute    = "kind"
	ServiceAttribute = "service"
	MovedAtAttribute = "movedAt"
)

// The attributes of a DLQ message whose body differs from the message's.
const (
	// EncodingAttribute is "base64" if the body holds characters that SQS rejects.
	EncodingAttribute = "encoding"
	// BytesAttribute and DigestAttribute are the length and the SHA-256 of a message that was truncated.
	BytesAttribute  = "bytes"
	DigestAttribute = "sha256"
)

const (
	// maxReasonLength limits the reason, in bytes.
	maxReasonLength = 1024
	// maxNameLength limits the source and the type, which the sender chose, in bytes.
	maxNameLength = 256
)

// sendDeadLetter sends the message to the DLQ, encoded or truncated if necessary.
func (w Worker) sendDeadLetter(ctx context.Context, m queue.Message, v MessageDisposition) error {
	letter := w.newDeadLetter(m, v)
	err := w.Dead.Send(ctx, fitToLimit(letter, queue.MaxDeadLetter))
	if len(m.Body) > queue.MaxBody/2 && fault.Is(err, fault.Invalid) {
		// The queue may be configured with a lower size limit than the SQS maximum.
		err = w.Dead.Send(ctx, fitToLimit(letter, queue.MaxBody))
	}
	return err
}

// newDeadLetter returns the DLQ message for a message.
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

// fitToLimit returns a DLQ message that the queue accepts: base64-encoded if the body is not sendable text, and
// truncated if it exceeds limit bytes. Attributes record both.
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
			// SQS rejects an empty body. A newline also decodes to nothing.
			letter.Body = []byte("\n")
		}
	}
	return letter
}

// encodedSize returns the message's size after encoding, in bytes.
func encodedSize(letter queue.Outgoing, encoded bool) int {
	if encoded {
		return letter.Size() - len(letter.Body) + base64.StdEncoding.EncodedLen(len(letter.Body))
	}
	return letter.Size()
}

// withAttribute returns a copy of the message with one more attribute.
func withAttribute(letter queue.Outgoing, name, value string) queue.Outgoing {
	letter.Attributes = maps.Clone(letter.Attributes)
	letter.Attributes[name] = value
	return letter
}

// truncateText returns the first length bytes of text.
func truncateText(text string, length int) string {
	return text[:min(len(text), length)]
}
