package notice

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// The known fields of an event's outermost object.
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
	headerSpecVersion // of Joist's envelopes
	headerTopic       // of SNS notifications
	headerSize
)

var headerNames = [headerSize]string{
	"version", "id", "source", "detail-type", "account", "region", "time", "resources", "detail", "specversion", "TopicArn",
}

// header has the raw values of the fields that all EventBridge events share; nil for a
// missing one.
type header [headerSize][]byte

// bytes returns the string value of a field, or nil if it is not a string.
func (h *header) bytes(field int) []byte { return stringValue(h[field]) }

// text returns a copy of bytes.
func (h *header) text(field int) string { return string(h.bytes(field)) }

// kind returns the kind of the event, or nil.
func (h *header) kind() *kind {
	source, detailType := h.bytes(headerSource), h.bytes(headerDetailType)
	for i := range kinds {
		if kinds[i].source == string(source) && kinds[i].detailType == string(detailType) {
			return &kinds[i]
		}
	}
	return nil
}

// unknownKindError returns fault.Foreign for an event of an unknown kind. It returns fault.Poison
// if the kind differs from a known one only in case: the event could be relevant.
func (h *header) unknownKindError() error {
	source, detailType := h.text(headerSource), h.text(headerDetailType)
	for _, k := range kinds {
		if strings.EqualFold(k.source, source) && strings.EqualFold(k.detailType, detailType) {
			return fault.F("reading an event", fault.Poison, "%q of %q differs in case from AWS's %q of %q", detailType, source, k.detailType, k.source)
		}
	}
	return fault.F("reading an event", fault.Foreign, "interruption does not handle %q of %q", truncateText(detailType), truncateText(source)).
		WithHint("if there are many, narrow the rule that sends it")
}

const (
	accountDigits  = 12
	maxRegionBytes = 32
)

// validAccount returns the account, or nil if it is invalid.
func validAccount(value []byte) []byte {
	if len(value) != accountDigits {
		return nil
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return nil
		}
	}
	return value
}

// validRegion returns the region, or nil if it is invalid.
func validRegion(value []byte) []byte {
	if len(value) > maxRegionBytes {
		return nil
	}
	for _, c := range value {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return nil
		}
	}
	return value
}
