package noticetest

import (
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

// ExpectedResult is the expected disposition of a message.
type ExpectedResult string

// The dispositions in interruption's README.
const (
	// Act: the facts of the Entry are published, and the message is deleted.
	Act ExpectedResult = "act"
	// Foreign: deleted and counted.
	Foreign ExpectedResult = "foreign"
	// Stale: too old; deleted and counted.
	Stale ExpectedResult = "stale"
	// Poison: moved to the DLQ with a reason.
	Poison ExpectedResult = "poison"
	// NotDelivered: EC2 does not return the instance yet. Retried for two minutes, then Foreign.
	NotDelivered ExpectedResult = "unseen"
)

// The environment of the corpus. The service under test must serve this account and region, and its EC2 must return
// Ours and Ended with the cluster's tags, and OtherAccount without.
const (
	Account = "123456789012"
	Region  = "us-east-2"
	// OtherAccount is an instance that does not belong to the cluster.
	OtherAccount = "i-0fedcba9876543210"
	// Ended is an instance of the cluster that EC2 shows as terminated.
	Ended = "i-0123456789abcdeff"
)

// Ours are running instances of the cluster; the last has an id in the old format.
var Ours = []string{"i-0123456789abcdef0", "i-0123456789abcdef1", "i-0a1b2c3d"}

// Entry is one message.
type Entry struct {
	Name string
	Body []byte
	Want ExpectedResult
	// Kind is the kind of the published facts; empty unless Want is Act.
	Kind event.NoticeKind
	// Instances are those for which node.noticed is published.
	Instances []string
	// Deadline is the facts' deadline relative to the queue's timestamp, or DeadlineNone.
	Deadline time.Duration
	// Warning marks a genuine, possibly malformed, spot warning of the cluster's instance: ignoring it wastes the
	// node's two minutes.
	Warning bool
}

// DeadlineNone is the Deadline of facts without a deadline.
const DeadlineNone = time.Duration(-1 << 62)

const (
	// age is how long before the queue's timestamp the events were created.
	age = time.Second
	// notice is the time that a spot warning gives.
	notice = 120 * time.Second
)

// Corpus returns all entries as if the queue received them at sent, which must be a whole second.
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

// add adds an event with the same expected result as its base.
func (c *corpus) add(b base, name string, e object) {
	c.raw(b, name, e.text(), b.want)
}

// as adds an event with another expected result than its base's.
func (c *corpus) as(want ExpectedResult, b base, name string, e object) {
	c.raw(b, name, e.text(), want)
}

// raw adds a body. Only entries with Want Act have a kind, instances and a deadline.
func (c *corpus) raw(b base, name string, body []byte, want ExpectedResult) {
	entry := Entry{Name: b.name + ": " + name, Body: body, Want: want, Deadline: DeadlineNone}
	if want == Act {
		entry.Kind, entry.Instances, entry.Deadline = b.kind, slices.Clone(b.instances), b.deadline
		entry.Warning = b.kind == event.SpotInterruption
	}
	c.entries = append(c.entries, entry)
}
