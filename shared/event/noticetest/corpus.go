package noticetest

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// ExpectedResult is what is to become of a message.
type ExpectedResult string

// The verdicts of interruption's README.
const (
	// Act means that the facts of Entry are published, and the message deleted.
	Act ExpectedResult = "act"
	// Foreign means that it is deleted and counted.
	Foreign ExpectedResult = "foreign"
	// Stale means that it is too old to mean anything: deleted and counted.
	Stale ExpectedResult = "stale"
	// Poison means that it is parked with a reason.
	Poison ExpectedResult = "poison"
	// NotDelivered means that EC2 does not show the instance: tried again for two
	// minutes, and then Foreign.
	NotDelivered ExpectedResult = "unseen"
)

// Where the corpus plays. A judge serves this account and region, and its EC2 shows
// Ours and Ended with the cluster's tags and OtherAccount without.
const (
	Account = "123456789012"
	Region  = "us-east-2"
	// OtherAccount is an instance of somebody else.
	OtherAccount = "i-0fedcba9876543210"
	// Ended is an instance of ours that EC2 shows terminated.
	Ended = "i-0123456789abcdeff"
)

// Ours are the instances of ours that run; the last has an id of the old form.
var Ours = []string{"i-0123456789abcdef0", "i-0123456789abcdef1", "i-0a1b2c3d"}

// Entry is one message.
type Entry struct {
	Name string
	Body []byte
	Want ExpectedResult
	// Kind is what the facts are about; empty unless Want is Act.
	Kind event.NoticeKind
	// Instances are those that node.noticed is said of.
	Instances []string
	// Deadline is the facts' deadline after the queue's stamp; DeadlineNone where
	// they have none.
	Deadline time.Duration
	// Warning says that this is a true spot warning of an instance of ours, however
	// odd: whoever does not act on it loses a node's two minutes.
	Warning bool
}

// DeadlineNone is the Deadline of facts without one.
const DeadlineNone = time.Duration(-1 << 62)

const (
	// age is how long before the queue's stamp the events of the corpus were said.
	age = time.Second
	// notice is what a warning gives.
	notice = 120 * time.Second
)

// Corpus is every entry, as the queue would have taken it at sent, which must be a
// whole second.
func Corpus(sent time.Time) []Entry {
	c := &corpus{sent: sent.UTC()}
	for _, b := range c.bases() {
		c.add(b, "as AWS writes it", b.event)
		c.truncated(b)
		c.fields(b)
		c.times(b)
	}
	for _, b := range c.warnings() {
		c.sizes(b)
		c.wrapped(b)
		c.spelled(b)
		c.versions(b)
		c.places(b)
		c.resources(b)
	}
	c.ids()
	c.states()
	c.health()
	c.reservations()
	c.noEvents()
	return c.entries
}

// corpus collects entries.
type corpus struct {
	sent    time.Time
	entries []Entry
}

// add adds an event that is acted on as its base is.
func (c *corpus) add(b base, name string, e object) {
	c.raw(b, name, e.text(), b.want)
}

// as adds an event with another verdict than its base's.
func (c *corpus) as(want ExpectedResult, b base, name string, e object) {
	c.raw(b, name, e.text(), want)
}

// raw adds a body. Only what is acted on has a kind, instances and a deadline.
func (c *corpus) raw(b base, name string, body []byte, want ExpectedResult) {
	entry := Entry{Name: b.name + ": " + name, Body: body, Want: want, Deadline: DeadlineNone}
	if want == Act {
		entry.Kind, entry.Instances, entry.Deadline = b.kind, slices.Clone(b.instances), b.deadline
		entry.Warning = b.kind == event.SpotInterruption
	}
	c.entries = append(c.entries, entry)
}
