package sqs

import (
	"crypto/md5" //nolint:gosec // the protocol's own checksum
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// maxMessage is the maximum size of a message and of a call in bytes.
const maxMessage = 1 << 20

type attribute struct {
	DataType    string
	StringValue string `json:",omitempty"`
}

type entry struct {
	ID                string `json:"Id"`
	MessageBody       string
	DelaySeconds      int
	MessageAttributes map[string]attribute
}

type sent struct {
	ID                     string `json:"Id,omitempty"`
	MessageID              string `json:"MessageId"`
	MD5OfMessageBody       string
	MD5OfMessageAttributes string `json:",omitempty"`
}

func (s *Service) sendMessage(_ *http.Request, in struct {
	QueueURL string `json:"QueueUrl"`
	entry
}) (any, error) {
	return s.send(in.QueueURL, in.entry)
}

func (s *Service) sendMessageBatch(_ *http.Request, in struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []entry
}) (any, error) {
	ids, total := []string{}, 0
	for _, e := range in.Entries {
		ids, total = append(ids, e.ID), total+e.size()
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	if total > maxMessage {
		return nil, &awsjson.Error{Shape: "BatchRequestTooLong", Code: "AWS.SimpleQueueService.BatchRequestTooLong", Message: "too long"}
	}
	if _, err := s.queue(in.QueueURL); err != nil {
		return nil, err
	}
	out := struct {
		Successful []sent    `json:",omitempty"`
		Failed     []failure `json:",omitempty"`
	}{}
	for _, e := range in.Entries {
		answer, err := s.send(in.QueueURL, e)
		if fault.Is(err, fault.Unknown) {
			return nil, err
		}
		if err != nil {
			out.Failed = append(out.Failed, failureOf(e.ID, err))
			continue
		}
		answer.ID = e.ID
		out.Successful = append(out.Successful, answer)
	}
	return out, nil
}

// send sends one message. Faults are drawn per entry, so batches can fail partially.
func (s *Service) send(url string, e entry) (sent, error) {
	q, err := s.queue(url)
	if err != nil {
		return sent{}, err
	}
	if err := e.check(); err != nil {
		return sent{}, err
	}
	values := map[string]string{}
	for name, a := range e.MessageAttributes {
		values[name] = a.StringValue
	}
	ids, err := q.SendBatch(seconds(e.DelaySeconds), queue.Outgoing{
		Source: values[queue.SourceAttribute], Type: values[queue.TypeAttribute], Body: []byte(e.MessageBody), Attributes: values,
	})
	if err != nil {
		return sent{}, err
	}
	return sent{MessageID: ids[0], MD5OfMessageBody: digest([]byte(e.MessageBody)), MD5OfMessageAttributes: digestOf(e.MessageAttributes)}, nil
}

func (e entry) size() int {
	size := len(e.MessageBody)
	for name, a := range e.MessageAttributes {
		size += len(name) + len(a.DataType) + len(a.StringValue)
	}
	return size
}

// check returns SQS's error for an invalid message.
func (e entry) check() error {
	switch {
	case e.MessageBody == "":
		return &awsjson.Error{Shape: "MissingParameter", Code: "MissingParameter", Message: "The request must contain the parameter MessageBody."}
	case e.size() > maxMessage:
		return badValue("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", maxMessage)
	case len(e.MessageAttributes) > 10:
		return badValue("Number of message attributes [%d] exceeds the allowed maximum [10].", len(e.MessageAttributes))
	case !legal(e.MessageBody):
		return awsjson.Errorf("InvalidMessageContents", "The message contains characters outside the allowed set.")
	}
	for name, a := range e.MessageAttributes {
		if a.DataType != "String" || a.StringValue == "" || !legal(a.StringValue) {
			return badValue("Message (user) attribute '%s' must contain a non-empty value of type 'String'.", name)
		}
	}
	return nil
}

// legal reports whether SQS accepts every character of s.
func legal(s string) bool {
	for _, r := range s {
		ok := r == '\t' || r == '\n' || r == '\r' || (r >= 0x20 && r <= 0xD7FF) || (r >= 0xE000 && r <= 0xFFFD) || r >= 0x10000
		if !ok {
			return false
		}
	}
	return utf8.ValidString(s)
}

func digest(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // the protocol's own checksum
	return hex.EncodeToString(sum[:])
}

// digestOf returns the checksum of attributes: sorted by name, each part preceded by its
// length.
func digestOf(attributes map[string]attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var text []byte
	part := func(s string) { text = append(binary.BigEndian.AppendUint32(text, uint32(len(s))), s...) }
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		part(name)
		part(attributes[name].DataType)
		text = append(text, 1)
		part(attributes[name].StringValue)
	}
	return digest(text)
}
