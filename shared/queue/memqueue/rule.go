package memqueue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
)

// Rule sends matching events to its targets.
type Rule struct {
	Name string
	// Pattern is the event pattern, JSON (package eventpattern).
	Pattern string
	Targets []Target
}

// Target is a queue of the same broker.
type Target struct {
	// ID identifies the target in a rule in the HTTP API; it may be empty.
	ID    string
	Queue string
	// InputPath selects a part of the event, such as "$.detail"; "" sends the whole event.
	InputPath string
	// DeadLetter is the queue for events whose Queue does not exist.
	DeadLetter string
}

type compiledRule struct {
	Rule
	pattern *eventpattern.Pattern
}

// PutRule adds a rule, or replaces the one with that name.
func (s *Bus) PutRule(rule Rule) error {
	pattern, err := eventpattern.Compile([]byte(rule.Pattern))
	if err != nil {
		return fmt.Errorf("adding rule %s: %w", rule.Name, err)
	}
	for _, target := range rule.Targets {
		if p := target.InputPath; p != "" && p != "$" && !strings.HasPrefix(p, "$.") {
			return fault.F("adding rule "+rule.Name, fault.Invalid, "input path %q must begin with $.", p)
		}
	}
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	next := &compiledRule{Rule: rule, pattern: pattern}
	for i, old := range s.rules {
		if old.Name == rule.Name {
			s.rules[i] = next
			return nil
		}
	}
	s.rules = append(s.rules, next)
	return nil
}

// Rules returns the rules in the order in which they were added.
func (s *Bus) Rules() []Rule {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	var rules []Rule
	for _, r := range s.rules {
		rule := r.Rule
		rule.Targets = slices.Clone(rule.Targets)
		rules = append(rules, rule)
	}
	return rules
}

// archiveAndRoute archives an event and routes it. The caller must hold the lock.
func (s *Bus) archiveAndRoute(event []byte) {
	s.archive = append(s.archive, archivedEvent{at: s.broker.now(), event: event})
	s.routeEvent(event, nil)
}

// routeEvent delivers an event by every rule, or by those named in only.
func (s *Bus) routeEvent(event []byte, only []string) {
	s.stats.Taken++
	matched := false
	fields, err := eventpattern.ReadFields(event)
	for _, rule := range s.rules {
		if len(only) > 0 && !slices.Contains(only, rule.Name) {
			continue
		}
		if err != nil || !rule.pattern.MatchFields(fields) {
			continue
		}
		matched = true
		for _, target := range rule.Targets {
			s.deliverEvent(event, rule.Name, target)
		}
	}
	if !matched {
		s.stats.Unmatched++
	}
}

// deliverEvent delivers an event to one target. If the input path selects nothing, the event goes to the
// DLQ: EventBridge calls this a failed invocation.
func (s *Bus) deliverEvent(event []byte, rule string, target Target) {
	b := s.broker
	q, body := b.queues[target.Queue], selectInput(event, target.InputPath)
	var attributes map[string]string
	if q == nil || body == nil {
		q, body, attributes = b.queues[target.DeadLetter], event, s.deadLetterAttributes(rule)
	}
	if q == nil {
		s.stats.Undelivered++
		return
	}
	s.stats.Routed++
	q.acceptEvent(body, attributes)
	if b.shouldFail(RoutedTwice, b.faults.RouteTwice) {
		s.stats.Routed++
		q.acceptEvent(body, attributes)
	}
}

// deadLetterAttributes returns the attributes that EventBridge sets on a DLQ message
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html).
func (s *Bus) deadLetterAttributes(rule string) map[string]string {
	if s.name != "default" {
		rule = s.name + "/" + rule
	}
	return map[string]string{
		"RULE_ARN":   "arn:aws:events:" + s.region + ":" + s.account + ":rule/" + rule,
		"ERROR_CODE": "NO_RESOURCE", "ERROR_MESSAGE": "The target does not exist.",
	}
}

// selectInput returns the part of an event at a path of names, or nil if it does not exist.
func selectInput(event []byte, path string) []byte {
	part := json.RawMessage(event)
	if path == "" || path == "$" {
		return part
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "$."), ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(part, &object) != nil || object[name] == nil {
			return nil
		}
		part = object[name]
	}
	return bytes.TrimSpace(part)
}
