package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/servicelog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Entries are what logs have about messages.
type Entries struct {
	Facts []event.Envelope
	Lines []servicelog.HandledLine
	Spans []RecordedSpan
	// Observed are steps that Kubernetes records about the object, which are not of a message.
	Observed []TraceStep
	// Skipped counts lines that are neither.
	Skipped int
}

// Add appends other entries.
func (e *Entries) Add(other Entries) {
	e.Facts, e.Lines, e.Spans = append(e.Facts, other.Facts...), append(e.Lines, other.Lines...), append(e.Spans, other.Spans...)
	e.Observed = append(e.Observed, other.Observed...)
	e.Skipped += other.Skipped
}

// Count returns the number of entries of logs.
func (e *Entries) Count() int { return len(e.Facts) + len(e.Lines) + len(e.Spans) }

// lineMax is the maximum length of a line in bytes: more than the largest fact.
const lineMax = 4 << 20

// ReadLog reads a log: one JSON object on each line, with any text before it, or the output of
// `aws logs filter-log-events`. An error is fault.Invalid and contains name.
func ReadLog(name string, r io.Reader) (Entries, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if begin, _ := buffered.Peek(1 << 10); isFilterOutput(begin) {
		return readFilterOutput(name, buffered)
	}
	var out Entries
	scanner := bufio.NewScanner(buffered)
	scanner.Buffer(nil, lineMax)
	for scanner.Scan() {
		out.addLine(scanner.Bytes())
	}
	if err := scanner.Err(); err != nil {
		return out, fault.E("reading the log "+name, fault.Invalid, err).WithHint("give a log with one JSON object on each line")
	}
	if out.Count() == 0 {
		return out, fault.F("reading the log "+name, fault.Invalid, "no line is a fact of the audit log or a log line of a service about a message").
			WithHint("export the audit log with aws logs filter-log-events --log-group-name /joist/CLUSTER/facts, or the services' logs with kubectl logs")
	}
	return out, nil
}

// isFilterOutput reports whether a file begins like the output of aws logs filter-log-events.
func isFilterOutput(begin []byte) bool {
	text := strings.Join(strings.Fields(string(begin)), "")
	return strings.HasPrefix(text, `{"events":[`) || strings.HasPrefix(text, `{"searchedLogStreams":`)
}

func readFilterOutput(name string, r io.Reader) (out Entries, err error) {
	decoder := json.NewDecoder(r)
	for {
		var page struct {
			Events []struct{ Message string }
		}
		if err := decoder.Decode(&page); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, fault.E("reading the log "+name, fault.Invalid, err).WithHint("export it again: the JSON is incomplete")
		}
		for _, one := range page.Events {
			out.addLine([]byte(one.Message))
		}
	}
}

// AddText adds one line of a log.
func (e *Entries) AddText(text string) { e.addLine([]byte(text)) }

// addLine adds a fact, an envelope or a line of a service.
func (e *Entries) addLine(text []byte) {
	at := bytes.IndexByte(text, '{')
	if at < 0 {
		if len(bytes.TrimSpace(text)) > 0 {
			e.Skipped++
		}
		return
	}
	text = text[at:]
	var kind struct {
		DetailType  string          `json:"detail-type"`
		Detail      json.RawMessage `json:"detail"`
		SpecVersion string          `json:"specversion"`
		EventID     string          `json:"event.id"`
		EventType   string          `json:"event.type"`
	}
	if json.Unmarshal(text, &kind) != nil {
		e.Skipped++
		return
	}
	switch {
	case kind.DetailType != "" && len(kind.Detail) > 0:
		e.addFact(kind.Detail)
	case kind.SpecVersion != "":
		e.addFact(text)
	case kind.EventID != "" || kind.EventType != "":
		var line servicelog.HandledLine
		if json.Unmarshal(text, &line) != nil {
			e.Skipped++
			return
		}
		e.Lines = append(e.Lines, line)
	default:
		e.Skipped++
	}
}

// addFact adds an envelope. It does not validate it: a log may have messages of other versions.
func (e *Entries) addFact(text []byte) {
	var fact event.Envelope
	if json.Unmarshal(text, &fact) != nil || fact.ID == "" {
		e.Skipped++
		return
	}
	e.Facts = append(e.Facts, fact)
}
