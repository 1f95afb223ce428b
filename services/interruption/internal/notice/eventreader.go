package notice

import (
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// The known names of a detail.
const (
	detailInstanceID = iota
	detailAction
	detailTerminationTime
	detailState
	detailService
	detailCategory
	detailCode
	detailAffected
	detailSize
)

var detailNames = [detailSize]string{
	"instance-id", "instance-action", "instance-termination-time", "state", "service", "eventTypeCategory", "eventTypeCode", "affectedEntities",
}

// eventReader is an event of a known kind on its way to a notice.
type eventReader struct {
	header  *header
	strings *stringCache
	kind    *kind
	// detail has the values of the known names as they are written, nil for one
	// that is missing.
	detail [detailSize][]byte
	// account and region are the event's own, where they can be read.
	account, region []byte
}

// readDetail reads the detail, if it is an object.
func (r *eventReader) readDetail() error {
	written := r.header[headerVersion]
	if said := stringValue(written); len(said) > 0 && string(said) != "0" || isNumber(written) && string(written) != "0" {
		return r.poisonError("version is %s, and this service knows 0", truncateText(string(written)))
	}
	if value := r.header[headerDetail]; len(value) > 0 && value[0] == '{' {
		var room [12]event.Member
		members, err := event.Members(value, room[:0])
		if err != nil {
			return err
		}
		return collectFields(r.detail[:], detailNames[:], members)
	}
	return nil
}

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// text is the text of a field of the detail, or nothing.
func (r *eventReader) text(field int) []byte { return stringValue(r.detail[field]) }

// internedText is such a text as a string: one of few, if AWS wrote it.
func (r *eventReader) internedText(field int) string { return r.strings.intern(r.text(field)) }

// requiredText is the text of a field without which nothing can be done.
func (r *eventReader) requiredText(field int) ([]byte, error) {
	if said := r.text(field); len(said) > 0 {
		return said, nil
	}
	return nil, r.poisonError("the detail has no %s", detailNames[field])
}

func (r *eventReader) poisonError(format string, args ...any) error {
	return fault.F("reading "+r.kind.detailType, fault.Poison, format, args...)
}

func (r *eventReader) foreignError(format string, args ...any) error {
	return fault.F("reading "+r.kind.detailType, fault.Foreign, format, args...)
}
