package notice

import (
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// The known names of a detail.
const (
	instanceID = iota
	action
	ends
	state
	service
	category
	code
	affected
	detailSize
)

var detailNames = [detailSize]string{
	"instance-id", "instance-action", "instance-termination-time", "state", "service", "eventTypeCategory", "eventTypeCode", "affectedEntities",
}

// reading is an event of a known kind on its way to a notice.
type reading struct {
	header *header
	texts  *texts
	kind   *kind
	// detail has the values of the known names as they are written, nil for one
	// that is missing.
	detail [detailSize][]byte
	// account and region are the event's own, where they can be read.
	account, region []byte
}

// open reads the detail, if it is an object.
func (r *reading) open() error {
	written := r.header[version]
	if said := text(written); len(said) > 0 && string(said) != "0" || isNumber(written) && string(written) != "0" {
		return r.poison("version is %s, and this service knows 0", short(string(written)))
	}
	if value := r.header[detail]; len(value) > 0 && value[0] == '{' {
		var room [12]event.Member
		members, err := event.Members(value, room[:0])
		if err != nil {
			return err
		}
		return fill(r.detail[:], detailNames[:], members)
	}
	return nil
}

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// text is the text of a field of the detail, or nothing.
func (r *reading) text(field int) []byte { return text(r.detail[field]) }

// said is such a text as a string: one of few, if AWS wrote it.
func (r *reading) said(field int) string { return r.texts.of(r.text(field)) }

// needed is the text of a field without which nothing can be done.
func (r *reading) needed(field int) ([]byte, error) {
	if said := r.text(field); len(said) > 0 {
		return said, nil
	}
	return nil, r.poison("the detail has no %s", detailNames[field])
}

func (r *reading) poison(format string, args ...any) error {
	return fault.F("reading "+r.kind.detailType, fault.Poison, format, args...)
}

func (r *reading) foreign(format string, args ...any) error {
	return fault.F("reading "+r.kind.detailType, fault.Foreign, format, args...)
}
