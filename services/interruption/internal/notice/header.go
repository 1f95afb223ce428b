package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The known names of an event's outermost object.
const (
	headerVersion = iota
	headerID
	headerSource
	headerDetailType
	headerAccount
	headerRegion
	headerTime
	headerResources
	headerDetail
	headerSpecVersion // of an envelope of ours
	headerTopic       // of SNS
	headerSize
)

var headerNames = [headerSize]string{
	"version", "id", "source", "detail-type", "account", "region", "time", "resources", "detail", "specversion", "TopicArn",
}

// header is the part of an event of EventBridge that all kinds share: the values
// of the known names as they are written, nil for one that is missing.
type header [headerSize][]byte

// bytes is the text of a field, or nothing if it has none.
func (h *header) bytes(field int) []byte { return stringValue(h[field]) }

// text is bytes as a string of its own.
func (h *header) text(field int) string { return string(h.bytes(field)) }

// kind finds the event's kind, or nil.
func (h *header) kind() *kind {
	from, typ := h.bytes(headerSource), h.bytes(headerDetailType)
	for i := range kinds {
		if kinds[i].source == string(from) && kinds[i].detailType == string(typ) {
			return &kinds[i]
		}
	}
	return nil
}

// unknownKindError is the verdict on an event of no known kind. One that differs from a
// known kind by the case of its letters is not one that nobody wanted.
func (h *header) unknownKindError() error {
	from, typ := h.text(headerSource), h.text(headerDetailType)
	for _, k := range kinds {
		if strings.EqualFold(k.source, from) && strings.EqualFold(k.detailType, typ) {
			return fault.F("reading an event", fault.Poison, "%q of %q is spelled %q of %q by AWS", typ, from, k.detailType, k.source)
		}
	}
	return fault.F("reading an event", fault.Foreign, "nobody here listens to %q of %q", truncateText(typ), truncateText(from)).
		WithHint("narrow the rule that sends it, if there are many")
}

const (
	accountDigits  = 12
	maxRegionBytes = 32
)

// account is the event's account, or nothing if that cannot be read.
func (h *header) account() []byte {
	written := h.bytes(headerAccount)
	if len(written) != accountDigits {
		return nil
	}
	for _, c := range written {
		if c < '0' || c > '9' {
			return nil
		}
	}
	return written
}

// region is the event's region, or nothing if that cannot be read.
func (h *header) region() []byte {
	written := h.bytes(headerRegion)
	if len(written) > maxRegionBytes {
		return nil
	}
	for _, c := range written {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return nil
		}
	}
	return written
}
