// Package notice reads AWS's own events: what is about to be taken away, from
// which instances, and by when.
//
// The idea is a table: source and detail-type name a parser, one small file for
// each kind of event. Parse is total and strict. Whatever the bytes are, the
// result is a notice, or an error that says what to do with the message:
// fault.Foreign for an event that is of no interest to us, fault.Poison for one
// that claims to be of interest and contradicts itself. Limits are checked
// before anything is decoded. Whose the instances are is not known here.
package notice

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Notice is what one event says.
type Notice struct {
	Kind event.NoticeKind
	// Instances are the ids of whom it speaks, at least one.
	Instances []string
	// Noticed is when AWS said so.
	Noticed time.Time
	// Deadline is absolute; zero when AWS names none that binds.
	Deadline time.Time
	Detail   string
	// State is set for a state change.
	State cloud.State
	// Account and Region are where it happened.
	Account, Region string
}

// header is the part of an EventBridge event that all kinds share.
type header struct {
	Version    string          `json:"version"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Account    string          `json:"account"`
	Region     string          `json:"region"`
	Time       time.Time       `json:"time"`
	Resources  texts           `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// parser reads the detail of one kind of event.
type parser func(h header) (Notice, error)

// key names a kind of event.
type key struct{ source, detailType string }

// parsers are the kinds that matter (B176–B180). The documentation has two
// names for the last, and both are taken.
var parsers = map[key]parser{
	{"aws.ec2", "EC2 Spot Instance Interruption Warning"}:                               spot,
	{"aws.ec2", "EC2 Instance Rebalance Recommendation"}:                                rebalance,
	{"aws.ec2", "EC2 Instance State-change Notification"}:                               stateChange,
	{"aws.health", "AWS Health Event"}:                                                  scheduledChange,
	{"aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"}:               reservation,
	{"aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning"}: reservation,
}

// Parse reads one event.
func Parse(data []byte) (Notice, error) {
	if err := event.CheckLimits(data); err != nil {
		return Notice{}, err
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return Notice{}, fault.E("decoding an event of AWS", fault.Poison, err)
	}
	parse, known := parsers[key{h.Source, h.DetailType}]
	if !known {
		return Notice{}, fault.F("reading an event", fault.Foreign, "nobody here listens to %q of %q", short(h.DetailType), short(h.Source)).
			WithHint("narrow the rule that sends it, if there are many")
	}
	if err := h.check(); err != nil {
		return Notice{}, err
	}
	n, err := parse(h)
	if err != nil {
		return Notice{}, err
	}
	n.Noticed, n.Account, n.Region, n.Detail = h.Time.UTC(), h.Account, h.Region, short(n.Detail)
	return n, nil
}

var account = regexp.MustCompile(`^[0-9]{12}$`)

// check refuses a header that no event of AWS has.
func (h header) check() error {
	switch {
	case h.Version != "0":
		return h.poison("version is %q, and this service knows 0", short(h.Version))
	case h.Time.IsZero():
		return h.poison("time is missing")
	case !account.MatchString(h.Account):
		return h.poison("account %q is not twelve digits", short(h.Account))
	case h.Region == "" || len(h.Region) > 32:
		return h.poison("region %q is none", short(h.Region))
	default:
		return nil
	}
}

// decode reads the detail.
func decode[T any](h header) (T, error) {
	var detail T
	if err := json.Unmarshal(h.Detail, &detail); err != nil {
		return detail, h.poison("detail: %w", err)
	}
	return detail, nil
}

func (h header) poison(format string, args ...any) error {
	return fault.F("reading "+h.DetailType, fault.Poison, format, args...)
}

func (h header) foreign(format string, args ...any) error {
	return fault.F("reading "+h.DetailType, fault.Foreign, format, args...)
}

// shortMax bounds foreign text in errors and details, in bytes.
const shortMax = 128

func short(text string) string {
	if len(text) > shortMax {
		return text[:shortMax] + "…"
	}
	return text
}
