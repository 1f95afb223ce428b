// Package events implements EventBridge's JSON protocol on memqueue's buses.
package events

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

const arnPrefix = "arn:aws:events:eu-west-1:123456789012:"

// Service is the API.
type Service struct {
	awsjson.API
	broker *memqueue.Broker

	mu       sync.Mutex
	events   int
	archives map[string]*archive
	replays  map[string]*playback
}

// New returns a service for the broker's buses. The bus "default" always exists.
func New(broker *memqueue.Broker) *Service {
	broker.Bus("default")
	s := &Service{broker: broker, archives: map[string]*archive{}, replays: map[string]*playback{}}
	s.API = awsjson.API{Target: "AWSEvents", Version: "1.1", Operations: map[string]awsjson.Operation{
		"PutEvents":         awsjson.Op(s.putEvents),
		"PutRule":           awsjson.Op(s.putRule),
		"PutTargets":        awsjson.Op(s.putTargets),
		"ListRules":         awsjson.Op(s.listRules),
		"ListTargetsByRule": awsjson.Op(s.listTargets),
		"TestEventPattern":  awsjson.Op(s.testPattern),
		"CreateEventBus":    awsjson.Op(s.createBus),
		"DescribeEventBus":  awsjson.Op(s.describeBus),
		"DescribeRule":      awsjson.Op(s.describeRule),

		"ListRuleNamesByTarget": awsjson.Op(s.namesByTarget),
		"CreateArchive":         awsjson.Op(s.createArchive),
		"DescribeArchive":       awsjson.Op(s.describeArchive),
		"StartReplay":           awsjson.Op(s.startReplay),
		"DescribeReplay":        awsjson.Op(s.describeReplay),
		"CancelReplay":          awsjson.Op(s.cancelReplay),
	}}
	return s
}

// bus returns a bus by name or ARN.
func (s *Service) bus(name string) (*memqueue.Bus, error) {
	name = name[strings.LastIndex(name, "/")+1:]
	if name == "" {
		name = "default"
	}
	bus, ok := s.broker.FindBus(name)
	if !ok {
		return nil, awsjson.Errorf("ResourceNotFoundException", "Event bus %s does not exist.", name)
	}
	return bus, nil
}

type entry struct{ EventBusName, Source, DetailType, Detail string }

type result struct {
	EventID      string `json:"EventId,omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

func (s *Service) putEvents(r *http.Request, in struct{ Entries []entry }) (any, error) {
	total := 0
	for _, e := range in.Entries {
		total += len(e.Source) + len(e.DetailType) + len(e.Detail)
	}
	if n := len(in.Entries); n == 0 || n > queue.MaxBatch || total > memqueue.MaxEntry {
		return nil, awsjson.Errorf("ValidationException", "%d entries of %d bytes", n, total)
	}
	out := struct {
		FailedEntryCount int
		Entries          []result
	}{}
	for _, e := range in.Entries {
		answer, err := s.put(r, e)
		if err != nil {
			return nil, err
		}
		if answer.ErrorCode != "" {
			out.FailedEntryCount++
		}
		out.Entries = append(out.Entries, answer)
	}
	return out, nil
}

// put publishes one entry. Faults are drawn per entry, so calls can fail partially.
func (s *Service) put(r *http.Request, e entry) (result, error) {
	bus, err := s.bus(e.EventBusName)
	if err != nil {
		return result{}, err
	}
	err = bus.Send(r.Context(), queue.Outgoing{Source: e.Source, Type: e.DetailType, Body: []byte(e.Detail)})
	switch {
	case err == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events++
		return result{EventID: fmt.Sprintf("event-%d", s.events)}, nil
	case fault.Is(err, fault.Unknown):
		return result{}, err
	case fault.Is(err, fault.Invalid) && strings.HasPrefix(e.Source, "aws."):
		return result{ErrorCode: "NotAuthorizedForSource", ErrorMessage: err.Error()}, nil
	case fault.Is(err, fault.Invalid):
		return result{ErrorCode: "MalformedDetail", ErrorMessage: err.Error()}, nil
	default:
		return result{ErrorCode: "InternalFailure", ErrorMessage: err.Error()}, nil
	}
}

type rule struct {
	Name         string
	Arn          string
	EventPattern string
	State        string
	EventBusName string
}

func (s *Service) putRule(_ *http.Request, in rule) (any, error) {
	bus, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	next := memqueue.Rule{Name: in.Name, Pattern: in.EventPattern}
	if old, ok := find(bus, in.Name); ok {
		next.Targets = old.Targets
	}
	if err := bus.PutRule(next); err != nil {
		return nil, awsjson.Errorf("InvalidEventPatternException", "Event pattern is not valid. Reason: %v", err)
	}
	return map[string]string{"RuleArn": arnOf(bus, in.Name)}, nil
}

func arnOf(bus *memqueue.Bus, name string) string {
	if bus.Name() == "default" {
		return arnPrefix + "rule/" + name
	}
	return arnPrefix + "rule/" + bus.Name() + "/" + name
}

func find(bus *memqueue.Bus, name string) (memqueue.Rule, bool) {
	rules := bus.Rules()
	i := slices.IndexFunc(rules, func(r memqueue.Rule) bool { return r.Name == name })
	if i < 0 {
		return memqueue.Rule{}, false
	}
	return rules[i], true
}

type target struct {
	ID               string `json:"Id"`
	Arn              string
	InputPath        string `json:",omitempty"`
	DeadLetterConfig *struct{ Arn string }
}

func (s *Service) putTargets(_ *http.Request, in struct {
	Rule         string
	EventBusName string
	Targets      []target
}) (any, error) {
	bus, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	rule, ok := find(bus, in.Rule)
	if !ok {
		return nil, awsjson.Errorf("ResourceNotFoundException", "Rule %s does not exist on EventBus %s.", in.Rule, bus.Name())
	}
	for _, t := range in.Targets {
		next := memqueue.Target{ID: t.ID, Queue: nameOf(t.Arn), InputPath: t.InputPath}
		if t.DeadLetterConfig != nil {
			next.DeadLetter = nameOf(t.DeadLetterConfig.Arn)
		}
		rule.Targets = append(slices.DeleteFunc(rule.Targets, func(old memqueue.Target) bool { return old.ID == t.ID }), next)
	}
	if err := bus.PutRule(rule); err != nil {
		return nil, awsjson.Errorf("ValidationException", "%v", err)
	}
	return map[string]any{"FailedEntryCount": 0, "FailedEntries": []string{}}, nil
}

// nameOf returns the queue's name in an ARN.
func nameOf(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }

func (s *Service) listRules(_ *http.Request, in struct{ NamePrefix, EventBusName string }) (any, error) {
	bus, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	rules := []rule{}
	for _, r := range bus.Rules() {
		if strings.HasPrefix(r.Name, in.NamePrefix) {
			rules = append(rules, rule{Name: r.Name, Arn: arnOf(bus, r.Name), EventPattern: r.Pattern, State: "ENABLED", EventBusName: bus.Name()})
		}
	}
	return map[string][]rule{"Rules": rules}, nil
}

func (s *Service) listTargets(_ *http.Request, in struct{ Rule, EventBusName string }) (any, error) {
	bus, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	r, ok := find(bus, in.Rule)
	if !ok {
		return nil, awsjson.Errorf("ResourceNotFoundException", "Rule %s does not exist on EventBus %s.", in.Rule, bus.Name())
	}
	targets := []target{}
	for _, t := range r.Targets {
		out := target{ID: t.ID, Arn: queueARN(t.Queue), InputPath: t.InputPath}
		if t.DeadLetter != "" {
			out.DeadLetterConfig = &struct{ Arn string }{queueARN(t.DeadLetter)}
		}
		targets = append(targets, out)
	}
	return map[string][]target{"Targets": targets}, nil
}

// namesByTarget returns the rules with a target.
func (s *Service) namesByTarget(_ *http.Request, in struct{ TargetArn, EventBusName string }) (any, error) {
	bus, err := s.bus(in.EventBusName)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, r := range bus.Rules() {
		if slices.ContainsFunc(r.Targets, func(t memqueue.Target) bool { return queueARN(t.Queue) == in.TargetArn }) {
			names = append(names, r.Name)
		}
	}
	return map[string][]string{"RuleNames": names}, nil
}

func queueARN(name string) string { return "arn:aws:sqs:eu-west-1:123456789012:" + name }

func (s *Service) testPattern(_ *http.Request, in struct{ Event, EventPattern string }) (any, error) {
	pattern, err := eventpattern.Compile([]byte(in.EventPattern))
	if err != nil {
		return nil, awsjson.Errorf("InvalidEventPatternException", "Event pattern is not valid. Reason: %v", err)
	}
	if !json.Valid([]byte(in.Event)) {
		return nil, awsjson.Errorf("ValidationException", "Parameter Event is not valid.")
	}
	ok, err := pattern.Match([]byte(in.Event))
	if err != nil {
		return nil, awsjson.Errorf("ValidationException", "Parameter Event is not valid. Reason: %v", err)
	}
	return map[string]bool{"Result": ok}, nil
}

func (s *Service) createBus(_ *http.Request, in struct{ Name string }) (any, error) {
	return map[string]string{"EventBusArn": arnPrefix + "event-bus/" + s.broker.Bus(in.Name).Name()}, nil
}

func (s *Service) describeBus(_ *http.Request, in struct{ Name string }) (any, error) {
	bus, err := s.bus(in.Name)
	if err != nil {
		return nil, err
	}
	return map[string]string{"Name": bus.Name(), "Arn": arnPrefix + "event-bus/" + bus.Name()}, nil
}
