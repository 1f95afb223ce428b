package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/servicelog"
	"github.com/joist-autoscaler/joist/shared/event"
)

// Query selects traces.
type Query struct {
	// Title is the object in words.
	Title string
	// IDs are correlation ids, message ids, digests and other ids; Names are names of objects and instances.
	IDs, Names []string
	// Intents and Instances are the launches and instances of the object. If there are any, messages about
	// other launches and instances of the same traces are left out.
	Intents, Instances []string
	Since, Until       time.Time
}

// AddNames adds names of the object that the query does not have.
func (q *Query) AddNames(names ...string) { q.Names = addNew(q.Names, names...) }

// AddIDs adds ids.
func (q *Query) AddIDs(ids ...string) { q.IDs = addNew(q.IDs, ids...) }

// AddIntent adds a launch of the object.
func (q *Query) AddIntent(id string) { q.IDs, q.Intents = addNew(q.IDs, id), addNew(q.Intents, id) }

// AddInstance adds an instance of the object.
func (q *Query) AddInstance(id string) {
	q.Names, q.Instances = addNew(q.Names, id), addNew(q.Instances, id)
}

// addNew appends texts that are not empty and not in the list.
func addNew(list []string, texts ...string) []string {
	for _, text := range texts {
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// Trace is what happened to an object.
type Trace struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Of         string    `json:"of"`
	Begin      time.Time `json:"begin"`
	End        time.Time `json:"end"`
	// Traces are the correlation ids, in the order of their first step.
	Traces []string    `json:"traces"`
	Steps  []TraceStep `json:"steps"`
	// Related are traces to which spans link.
	Related []string `json:"related"`
	// Missing is what the logs do not have.
	Missing []string `json:"missing"`
}

// Results of steps.
const (
	ResultHandled = "handled"
	ResultRetried = "retried"
	ResultDropped = "dropped"
	ResultDLQ     = "dlq"
	ResultHidden  = "left-hidden"
	// ResultPublished: only the audit log has the message, which has no handling.
	ResultPublished = "published"
	ResultFailed    = "failed"
	ResultDone      = "done"
)

// TraceStep is the handling of one message by one service, or a span.
type TraceStep struct {
	Trace string `json:"trace"`
	// From is the sender of the message, and Service the service that handled it; a fact of which only the
	// audit log is known has no Service.
	From    string `json:"from,omitempty"`
	Service string `json:"service,omitempty"`
	// What names the type and the subject of the message, or the name of the span.
	What    string `json:"what"`
	Message string `json:"message,omitempty"`
	Cause   string `json:"cause,omitempty"`
	// Sent is when the message was sent; Begin and End are the last handling, or the span.
	Sent  time.Time `json:"sent,omitzero"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// Result is one of the results, and Detail the error or what the message says.
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
	// Attempts counts the handlings of the message by the service.
	Attempts int `json:"attempts,omitempty"`
	// Depth is the number of causes above it that are in the trace.
	Depth int `json:"depth"`
}

// repeatedTypes are messages about the whole cluster, which mention every object all the time.
var repeatedTypes = []event.Type{event.NodesKeptType, event.InstancesListedType, event.TickType, event.ClusterSnapshotType}

// Build builds the traces of a query.
func Build(e Entries, q Query) Trace {
	b := builder{query: q, traces: map[string]bool{}}
	b.findTraces(&e)
	b.addSteps(&e)
	b.addObserved(&e)
	b.sortSteps()
	return b.newTrace(&e)
}

type builder struct {
	query  Query
	traces map[string]bool
	steps  []TraceStep
}

// findTraces finds the correlation ids of the entries that mention the object.
func (b *builder) findTraces(e *Entries) {
	for i := range e.Facts {
		f := &e.Facts[i]
		if b.isInTime(f.Time) && !slices.Contains(repeatedTypes, f.Type) && (b.hasID(f.Correlation, f.ID, f.Causation) || b.mentions(f.Subject, string(f.Data))) {
			b.traces[f.Correlation] = true
		}
	}
	for i := range e.Lines {
		l := &e.Lines[i]
		if b.isInTime(l.Time) && !slices.Contains(repeatedTypes, event.Type(l.EventType)) && (b.hasID(l.Correlation, l.EventID) || b.mentions(l.Subject, l.Error)) {
			b.traces[l.Correlation] = true
		}
	}
	for i := range e.Spans {
		s := &e.Spans[i]
		if b.isInTime(s.Start) && (b.hasID(s.Trace, s.ID, s.Attributes["messaging.message.id"]) || b.mentions(slices.Collect(maps.Values(s.Attributes))...)) {
			b.traces[s.Trace] = true
		}
	}
	delete(b.traces, "")
}

func (b *builder) isInTime(at time.Time) bool {
	return (b.query.Since.IsZero() || !at.Before(b.query.Since)) && (b.query.Until.IsZero() || !at.After(b.query.Until))
}

func (b *builder) hasID(ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return id != "" && slices.Contains(b.query.IDs, id) })
}

// mentions reports whether a text contains one of the names or ids as a whole word.
func (b *builder) mentions(texts ...string) bool {
	return slices.ContainsFunc(slices.Concat(b.query.Names, b.query.IDs), func(name string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return containsWord(text, name) })
	})
}

// containsWord reports whether a text contains a name that is not a part of a longer name.
func containsWord(text, name string) bool {
	if name == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		begin, end := from+at, from+at+len(name)
		if (begin == 0 || !isNameByte(text[begin-1])) && (end == len(text) || !isNameByte(text[end])) {
			return true
		}
		from = begin + 1
	}
}

func isNameByte(c byte) bool {
	return c == '-' || c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isOfOthers reports whether a message is about another launch or instance.
func (b *builder) isOfOthers(subject string) bool {
	kind, name, _ := strings.Cut(subject, "/")
	switch kind {
	case "intent":
		return len(b.query.Intents) > 0 && !slices.Contains(b.query.Intents, name)
	case "instance":
		return len(b.query.Instances) > 0 && !slices.Contains(b.query.Instances, name)
	}
	return false
}

// addSteps adds a step for each message and service, and for each span that is no such step.
func (b *builder) addSteps(e *Entries) {
	facts := map[string]*event.Envelope{}
	for i := range e.Facts {
		if f := &e.Facts[i]; b.traces[f.Correlation] && !b.isOfOthers(f.Subject) {
			facts[f.ID] = f
		}
	}
	isHandled, decisions := map[[2]string]int{}, findDecisions(facts)
	for i := range e.Lines {
		l := e.Lines[i]
		if trace, ok := decisions[l.EventID]; ok {
			l.Correlation = trace
		}
		if b.traces[l.Correlation] && !b.isOfOthers(l.Subject) {
			b.addLine(&l, facts[l.EventID], isHandled)
		}
	}
	for i := range e.Spans {
		b.addSpan(&e.Spans[i], isHandled)
	}
	for _, id := range slices.Sorted(maps.Keys(facts)) {
		if f := facts[id]; !slices.ContainsFunc(b.steps, func(s TraceStep) bool { return s.Message == f.ID }) {
			b.steps = append(b.steps, TraceStep{
				Trace: f.Correlation, From: trimSource(f.Source), What: describeMessage(string(f.Type), f.Subject), Message: f.ID, Cause: f.Causation,
				Sent: f.Time, Begin: f.Time, End: f.Time, Result: ResultPublished, Detail: describeFact(f),
			})
		}
	}
}

// findDecisions returns the traces of proposals by the message for which disruption decided them: a snapshot, which
// has a trace of its own because it leads to any number of proposals.
func findDecisions(facts map[string]*event.Envelope) map[string]string {
	out := map[string]string{}
	for _, f := range facts {
		if trace, known := out[f.Causation]; f.Type == event.DisruptionProposedType && f.Causation != "" && (!known || f.Correlation < trace) {
			out[f.Causation] = f.Correlation
		}
	}
	return out
}

// addLine adds the handling of a message, or a further attempt of one.
func (b *builder) addLine(l *servicelog.HandledLine, fact *event.Envelope, isHandled map[[2]string]int) {
	key := [2]string{l.EventID, l.Service}
	at, isKnown := isHandled[key]
	if !isKnown {
		at = len(b.steps)
		isHandled[key] = at
		b.steps = append(b.steps, TraceStep{Trace: l.Correlation, Service: l.Service, What: describeMessage(l.EventType, l.Subject), Message: l.EventID, Sent: l.Sent()})
	}
	s := &b.steps[at]
	s.Attempts++
	if fact != nil {
		s.From, s.Cause, s.Sent, s.Detail = trimSource(fact.Source), fact.Causation, fact.Time, describeFact(fact)
	}
	if !isKnown || l.Time.After(s.End) {
		s.Begin, s.End, s.Result = l.Begin(), l.Time, resultOf(l)
		if l.Error != "" {
			s.Detail = l.Error
		}
		if l.RetryAfterMS > 0 {
			s.Detail += fmt.Sprintf(" (again after %s)", time.Duration(l.RetryAfterMS)*time.Millisecond)
		}
	}
	if sent := l.Sent(); fact == nil && sent.Before(s.Sent) {
		s.Sent = sent
	}
}

// resultOf returns the result of a disposition.
func resultOf(l *servicelog.HandledLine) string {
	switch l.Disposition {
	case "retry":
		return ResultRetried
	case "dlq":
		return ResultDLQ
	case "keep":
		return ResultHidden
	}
	if l.Kind != "" {
		return ResultDropped
	}
	return ResultHandled
}

// addSpan adds a span. A span of a message that a log line has only adds its exact times.
func (b *builder) addSpan(s *RecordedSpan, isHandled map[[2]string]int) {
	if !b.traces[s.Trace] || b.isOfOthers(s.Attributes["joist.subject"]) {
		return
	}
	message := s.Attributes["messaging.message.id"]
	if at, ok := isHandled[[2]string{message, s.Service}]; ok && message != "" {
		b.steps[at].Begin, b.steps[at].End = s.Start, s.End
		return
	}
	step := TraceStep{Trace: s.Trace, Service: s.Service, What: strings.TrimSpace(s.Name + " " + s.Attributes["joist.subject"]), Message: message, Begin: s.Start, End: s.End, Result: ResultDone, Detail: describeSpan(s)}
	if s.Error != "" {
		step.Result, step.Detail = ResultFailed, s.Error
	}
	b.steps = append(b.steps, step)
}

// addObserved adds the steps that Kubernetes records, within the period.
func (b *builder) addObserved(e *Entries) {
	for _, s := range e.Observed {
		if b.isInTime(s.Begin) || b.isInTime(s.End) {
			b.steps = append(b.steps, s)
		}
	}
}

// sortSteps sorts the steps by time, and sets their depths.
func (b *builder) sortSteps() {
	slices.SortStableFunc(b.steps, func(x, y TraceStep) int {
		return cmp.Or(x.start().Compare(y.start()), x.Begin.Compare(y.Begin), cmp.Compare(x.What, y.What), cmp.Compare(x.Service, y.Service))
	})
	depths := map[string]int{}
	for i := range b.steps {
		s := &b.steps[i]
		if above, ok := depths[s.Cause]; ok && s.Cause != "" {
			s.Depth = above + 1
		}
		if s.Message != "" {
			depths[s.Message] = s.Depth
		}
	}
}

// start is when the step begins to take time: when the message was sent, or the span began.
func (s *TraceStep) start() time.Time {
	if !s.Sent.IsZero() && s.Sent.Before(s.Begin) {
		return s.Sent
	}
	return s.Begin
}

func (b *builder) newTrace(e *Entries) Trace {
	out := Trace{APIVersion: "cli.joist.sh/v1", Kind: "Trace", Of: b.query.Title, Traces: []string{}, Steps: b.steps, Related: []string{}, Missing: []string{}}
	for i := range b.steps {
		s := &b.steps[i]
		if out.Begin.IsZero() {
			out.Begin = s.start()
		}
		if s.End.After(out.End) {
			out.End = s.End
		}
		out.Traces = addNew(out.Traces, s.Trace)
	}
	for i := range e.Spans {
		if b.traces[e.Spans[i].Trace] {
			for _, link := range e.Spans[i].Links {
				if !b.traces[link] && !slices.Contains(out.Related, link) {
					out.Related = append(out.Related, link)
				}
			}
		}
	}
	out.Missing = b.listMissing(e)
	return out
}

// listMissing lists what the logs do not have.
func (b *builder) listMissing(e *Entries) []string {
	out := []string{}
	if len(e.Lines)+len(e.Spans) == 0 && len(e.Facts) > 0 {
		out = append(out, "the audit log has facts only: not the commands between services, and not when and how a message was handled")
	} else {
		out = append(out, b.listMissingCauses()...)
	}
	seen := map[string]bool{}
	for _, l := range e.Lines {
		seen[l.Service] = true
	}
	for _, s := range e.Spans {
		seen[s.Service] = true
	}
	if len(seen) > 0 {
		var absent []string
		for _, service := range []string{"catalog", "disruption", "interruption", "launcher", "lifecycle", "planner"} {
			if !seen[service] {
				absent = append(absent, service)
			}
		}
		if len(absent) > 0 {
			out = append(out, "no log of "+strings.Join(absent, ", "))
		}
	}
	if e.Skipped > 0 {
		out = append(out, fmt.Sprintf("%d lines are neither facts nor log lines about messages", e.Skipped))
	}
	return out
}

// listMissingCauses lists the messages that caused steps and are not in the logs.
func (b *builder) listMissingCauses() (out []string) {
	known := map[string]bool{}
	for _, s := range b.steps {
		known[s.Message] = true
	}
	for _, s := range b.steps {
		if s.Cause != "" && !known[s.Cause] {
			known[s.Cause] = true
			out = append(out, fmt.Sprintf("message %s, which caused %s, is not in these logs", s.Cause, s.What))
		}
	}
	return out
}

func describeMessage(typ, subject string) string { return strings.TrimSpace(typ + " " + subject) }

func trimSource(source string) string { return strings.TrimPrefix(source, "joist/") }

// describeSpan returns the fields of a span that the services add.
func describeSpan(s *RecordedSpan) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s.Attributes)) {
		name, isOurs := strings.CutPrefix(key, "joist.")
		if isOurs && name != "cluster" && name != "correlation" && name != "subject" {
			parts = append(parts, name+"="+s.Attributes[key])
		}
	}
	return strings.Join(parts, " ")
}

// describeFact returns the important values of a fact.
func describeFact(f *event.Envelope) string {
	var body struct {
		Claims     json.RawMessage  `json:"claims"`
		Nominated  int              `json:"nominated"`
		Unplaced   int              `json:"unplaced"`
		Phase      string           `json:"phase"`
		Reason     string           `json:"reason"`
		Method     string           `json:"method"`
		Kind       string           `json:"kind"`
		Detail     string           `json:"detail"`
		Deadline   time.Time        `json:"deadline"`
		Instances  []event.Launched `json:"instances"`
		Refusals   []event.Refusal  `json:"refusals"`
		InstanceID string           `json:"instanceId"`
	}
	if json.Unmarshal(f.Data, &body) != nil {
		return ""
	}
	switch f.Type {
	case event.PlanMadeType:
		return fmt.Sprintf("%s NodeClaims, %d pods nominated, %d unplaced", body.Claims, body.Nominated, body.Unplaced)
	case event.DisruptionProposedType:
		return strings.TrimSpace(body.Phase + ": " + body.Reason + " by " + body.Method)
	case event.NodeNoticedType:
		text := strings.TrimSpace(body.Kind + " " + body.Detail)
		if !body.Deadline.IsZero() {
			text += ", deadline " + body.Deadline.UTC().Format(time.TimeOnly)
		}
		return text
	case event.LaunchSettledType:
		return describeLaunch(body.Instances, body.Refusals)
	}
	return ""
}

func describeLaunch(instances []event.Launched, refusals []event.Refusal) string {
	var parts []string
	for _, i := range instances {
		parts = append(parts, fmt.Sprintf("%s (%s, %s, %s)", i.InstanceID, i.InstanceType, i.CapacityType, i.Zone))
	}
	for _, r := range refusals {
		parts = append(parts, "refused: "+r.Code)
	}
	const shown = 3
	if len(parts) > shown {
		parts = append(parts[:shown], fmt.Sprintf("and %d more", len(parts)-shown))
	}
	return strings.Join(parts, ", ")
}
