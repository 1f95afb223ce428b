package notice

import (
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// The known fields of a detail.
const (
	detailInstanceID = iota
	detailAction
	detailTerminationTime
	detailState
	detailService
	detailCategory
	detailCode
	detailAffected
	detailAffectedAccount
	detailEventRegion
	detailSize
)

var detailNames = [detailSize]string{
	"instance-id", "instance-action", "instance-termination-time", "state", "service", "eventTypeCategory", "eventTypeCode", "affectedEntities",
	"affectedAccount", "eventRegion",
}

// eventReader decodes an event of a known kind.
type eventReader struct {
	header *header
	kind   *kind
	// detail has the raw values of the known fields; nil for a missing one.
	detail [detailSize][]byte
	// account and region are those of the event's instances; nil if they are invalid.
	account, region []byte
}

// locate sets account and region. Those of an AWS Health event are in its detail: its own account and region are where AWS
// delivered it, which may be a backup region or the account of an organization's administrator.
// (https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html)
func (r *eventReader) locate() {
	r.account, r.region = validAccount(r.header.bytes(headerAccount)), validRegion(r.header.bytes(headerRegion))
	if r.kind.notice != event.ScheduledChange {
		return
	}
	if account := validAccount(r.text(detailAffectedAccount)); account != nil {
		r.account = account
	}
	if region := validRegion(r.text(detailEventRegion)); len(region) > 0 {
		r.region = region
	}
}

// readDetail checks the version and reads the detail if it is an object.
func (r *eventReader) readDetail() error {
	version := r.header[headerVersion]
	if text := stringValue(version); len(text) > 0 && string(text) != "0" || isNumber(version) && string(version) != "0" {
		return r.poisonError("version is %s, and this service supports only 0", truncateText(string(version)))
	}
	return collectFields(r.detail[:], detailNames[:], r.header[headerDetail])
}

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// text returns the string value of a field of the detail, or nil.
func (r *eventReader) text(field int) []byte { return stringValue(r.detail[field]) }

// requiredText is text; it returns fault.Poison if the field is missing or empty.
func (r *eventReader) requiredText(field int) ([]byte, error) {
	if text := r.text(field); len(text) > 0 {
		return text, nil
	}
	return nil, r.poisonError("the detail has no %s", detailNames[field])
}

func (r *eventReader) poisonError(format string, args ...any) error {
	return fault.F("reading "+r.kind.detailType, fault.Poison, format, args...)
}

func (r *eventReader) foreignError(format string, args ...any) error {
	return fault.F("reading "+r.kind.detailType, fault.Foreign, format, args...)
}
