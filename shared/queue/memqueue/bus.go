package memqueue

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// MaxEntry is the maximum size of an entry in bytes: source, detail-type and detail. It is also the maximum of a
// call.
const MaxEntry = queue.MaxBody

// Bus is a model of an EventBridge bus: it wraps messages into events and delivers them to the targets of every
// matching rule.
type Bus struct {
	broker  *Broker
	name    string
	account string
	region  string
	rules   []*compiledRule
	archive []archivedEvent
	stats   BusStats
}

// BusStats count events.
type BusStats struct {
	// Taken counts events that were sent, put or replayed, Unmatched those of them that matched no rule.
	Taken, Unmatched int
	// Routed counts deliveries to targets, Undelivered those to a missing queue without a DLQ.
	Routed, Undelivered int
}

type archivedEvent struct {
	at    time.Time
	event []byte
}

var _ queue.Sender = (*Bus)(nil)

// Bus returns the bus with that name. The first call creates it.
func (b *Broker) Bus(name string) *Bus {
	b.mu.Lock()
	defer b.mu.Unlock()
	bus := b.buses[name]
	if bus == nil {
		bus = &Bus{broker: b, name: name, account: "123456789012", region: "eu-west-1"}
		b.buses[name] = bus
	}
	return bus
}

// FindBus returns an existing bus.
func (b *Broker) FindBus(name string) (*Bus, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bus, ok := b.buses[name]
	return bus, ok
}

// SetAccount sets the account and region in events, and returns the bus.
func (s *Bus) SetAccount(account, region string) *Bus {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	s.account, s.region = account, region
	return s
}

// Name returns the bus's name.
func (s *Bus) Name() string { return s.name }

// Send wraps each message into an event and routes it. A body must be a JSON object; attributes are dropped.
func (s *Bus) Send(ctx context.Context, messages ...queue.Outgoing) error {
	op := "sending to bus " + s.name
	for _, m := range messages {
		if err := checkEntry(m); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	for batch := range slices.Chunk(messages, queue.MaxBatch) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		if err := s.putEntries(batch); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry rejects what PutEvents rejects.
func checkEntry(m queue.Outgoing) error {
	op := "checking an entry of type " + m.Type
	size := len(m.Source) + len(m.Type) + len(m.Body)
	switch {
	case m.Source == "" || m.Type == "":
		return fault.F(op, fault.Invalid, "source and type are required")
	case strings.HasPrefix(m.Source, "aws."):
		return fault.F(op, fault.Invalid, "source %q is reserved for AWS", m.Source)
	case size > MaxEntry:
		return fault.F(op, fault.Invalid, "%d bytes exceed the limit of %d", size, MaxEntry)
	case !json.Valid(m.Body) || bytes.TrimLeft(m.Body, " \t\r\n")[0] != '{':
		return fault.F(op, fault.Invalid, "the body is not a JSON object")
	}
	return nil
}

// putEntries models one PutEvents call.
func (s *Bus) putEntries(batch []queue.Outgoing) error {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shouldFail(SendFailed, b.faults.FailSend) {
		return fault.F("sending to bus "+s.name, fault.Retry, "injected fault: the call failed")
	}
	for _, m := range batch {
		event, err := s.newEvent(m)
		if err != nil {
			return err
		}
		s.archiveAndRoute(event)
	}
	if b.shouldFail(SendAnswerLost, b.faults.LoseSendAnswer) {
		return fault.F("sending to bus "+s.name, fault.Unknown, "injected fault: the response was lost")
	}
	return nil
}

// event is EventBridge's envelope, with its fields in order.
type event struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// newEvent returns the event. It compacts the detail, as EventBridge does not preserve whitespace.
func (s *Bus) newEvent(m queue.Outgoing) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(event{
		Version: "0", ID: s.broker.newID(), DetailType: m.Type, Source: m.Source, Account: s.account,
		Time: s.broker.now().UTC().Format(time.RFC3339), Region: s.region, Resources: []string{}, Detail: m.Body,
	})
	if err != nil {
		return nil, fault.E("encoding an event of type "+m.Type, fault.Invalid, err)
	}
	return bytes.TrimRight(text.Bytes(), "\n"), nil
}

// PutEvent routes a complete event, as AWS services send them.
func (s *Bus) PutEvent(raw []byte) error {
	if !json.Valid(raw) || bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		return fault.F("putting an event on bus "+s.name, fault.Invalid, "the event is not a JSON object")
	}
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.shouldFail(EventLost, b.faults.LoseEvent) {
		s.archiveAndRoute(bytes.Clone(raw))
	}
	return nil
}

// Replay routes the archived events of [from, to) again, to the named rules or, without names, to all. As from
// EventBridge's archive they have a "replay-name".
func (s *Bus) Replay(name string, from, to time.Time, rules ...string) (int, error) {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	mark, err := json.Marshal(name)
	if err != nil {
		return 0, fault.E("replaying", fault.Invalid, err)
	}
	count := 0
	for _, a := range s.archive {
		if a.at.Before(from) || !a.at.Before(to) {
			continue
		}
		prefix := append([]byte(`{"replay-name":`), mark...)
		again := append(append(prefix, ','), bytes.TrimLeft(a.event, " \t\r\n")[1:]...)
		s.routeEvent(again, rules)
		count++
	}
	return count, nil
}

// Stats returns the bus's counts.
func (s *Bus) Stats() BusStats {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	return s.stats
}
