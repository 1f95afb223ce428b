package noticetest

import (
	"maps"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// long is ten kilobytes of text.
var long = quote(strings.Repeat("a", 10_000))

// oddity is an unusual value for a field.
type oddity struct{ name, value string }

// Names of values of the wrong type, and of empty or long ones.
const (
	isNull   = "null"
	isNumber = "a number"
	isTrue   = "true"
	isObject = "an object"
	isArray  = "an array"
	isEmpty  = "empty"
	isLong   = "ten kilobytes"
)

var oddities = []oddity{
	{isNull, "null"}, {isNumber, "7"}, {isTrue, "true"}, {isObject, "{}"}, {isArray, "[]"}, {isEmpty, `""`}, {isLong, long},
}

// field defines the expected results of variants of one field.
type field struct {
	name string
	// otherwise is the result if the field is missing or odd; except overrides it by oddity.
	otherwise ExpectedResult
	except    map[string]ExpectedResult
	// twice is the result if the field is repeated.
	twice ExpectedResult
}

// Whether a field is required (rule 1) or optional (rule 2). A text of ten kilobytes is valid JSON: as a source it is
// foreign, as a version it is not 0.
func needed(name string) field    { return field{name: name, otherwise: Poison, twice: Poison} }
func optional(name string) field  { return field{name: name, otherwise: Act, twice: Poison} }
func unnoticed(name string) field { return field{name: name, otherwise: Act, twice: Act} }

func (f field) but(oddity string, v ExpectedResult) field {
	except := map[string]ExpectedResult{oddity: v}
	maps.Copy(except, f.except)
	f.except = except
	return f
}

// envelope are the fields of every event.
var envelope = []field{
	optional("version").but(isNumber, Poison).but(isLong, Poison),
	optional("id"),
	needed("detail-type").but(isLong, Foreign),
	needed("source").but(isLong, Foreign),
	optional("account"),
	optional("region"),
	optional("resources"),
	needed("detail"),
}

// details are the fields of the detail, by kind.
var details = map[event.NoticeKind][]field{
	event.SpotInterruption:        {needed("instance-id"), optional("instance-action")},
	event.RebalanceRecommendation: {needed("instance-id")},
	event.StateChange:             {needed("instance-id"), needed("state")},
	event.ScheduledChange: {
		unnoticed("eventArn"), needed("service").but(isLong, Foreign), optional("eventTypeCode"),
		needed("eventTypeCategory").but(isLong, Foreign), unnoticed("startTime"),
		// If it lists no instance, the event's resources do.
		optional("affectedEntities"),
	},
	event.ReservationInterruption: {needed("instance-id"), optional("instance-action"), optional("instance-termination-time")},
}

// fields adds variants in which each field is missing, odd, repeated or in capitals (rules 2 and 5).
func (c *corpus) fields(b base) {
	for _, f := range envelope {
		c.field(b, b, f, b.event, func(o object) object { return o })
	}
	for _, f := range details[b.kind] {
		c.field(b, b, f, b.detail, b.inside)
	}
	// Without the event's time, the queue's timestamp counts (rule 3).
	c.field(b, b.due(notice), optional("time"), b.event, func(o object) object { return o })
}

// field adds variants of one member of an object, which event puts back into its event. odd is the base of the
// variants in which the member is missing or odd.
func (c *corpus) field(b, odd base, f field, o object, event func(object) object) {
	c.as(f.otherwise, odd, "no "+f.name, event(o.without(f.name)))
	for _, v := range oddities {
		want, known := f.except[v.name]
		if !known {
			want = f.otherwise
		}
		c.as(want, odd, f.name+" is "+v.name, event(o.with(f.name, v.value)))
	}
	upper := strings.ToUpper(f.name)
	c.as(f.twice, b, f.name+" twice", event(o.twice(f.name)))
	c.as(f.twice, b, f.name+" again in capitals", event(o.plus(upper, o[o.find(f.name)].value)))
	c.add(b, f.name+" in capitals", event(o.called(f.name, upper)))
}
