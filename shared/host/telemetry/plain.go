package telemetry

import (
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/host"
)

// plain writes the ordinary line of a message as slog's JSON handler would, byte for
// byte, at a fifth of the cost: there may be ten thousand a second. A line with
// text that needs an escape, or a field of another type, it leaves to slog.
type plain struct {
	out io.Writer
	// service is the member that slog writes in each line.
	service string
}

func newPlain(o Options) plain { return plain{out: o.Out, service: o.Service} }

// lines are used again, for most are of one length.
var lines = sync.Pool{New: func() any { return &wide{text: make([]byte, 0, 1024)} }}

// wide is one line that is being written.
type wide struct {
	text []byte
	// odd is set where slog has to write it.
	odd bool
	// at and stamp are the time that was written last, for the lines of a batch have
	// the same.
	at    time.Time
	stamp []byte
}

// write reports whether it wrote the line.
func (p plain) write(l *host.Line, level slog.Level) bool {
	w := lines.Get().(*wide)
	defer lines.Put(w)
	w.text, w.odd = w.text[:0], false
	w.time(`{"time":`, l.Began.Add(l.Took))
	w.string(`,"level":`, level.String())
	w.string(`,"msg":`, message)
	w.string(`,"service":`, p.service)
	w.string(`,"event.type":`, l.Note.Type)
	w.string(`,"event.id":`, l.Note.ID)
	w.string(`,"subject":`, l.Note.Subject)
	w.string(`,"cluster":`, l.Note.Cluster)
	w.string(`,"correlation":`, l.Note.Correlation)
	w.int(`,"receive_count":`, int64(l.Message.Receives))
	w.int(`,"age_ms":`, l.Age().Milliseconds())
	w.string(`,"verdict":`, string(l.Verdict.Action))
	w.string(`,"kind":`, string(l.Verdict.Kind))
	w.int(`,"took_ms":`, l.Took.Milliseconds())
	if l.Verdict.After > 0 {
		w.int(`,"again_ms":`, l.Verdict.After.Milliseconds())
	}
	if l.Note.Skew > 0 {
		w.int(`,"skew_ms":`, l.Note.Skew.Milliseconds())
	}
	w.fields(l.Note.Fields)
	if l.Verdict.Reason != "" {
		w.string(`,"error":`, l.Verdict.Reason)
	}
	if l.Err != nil {
		w.string(`,"undone":`, l.Err.Error())
	}
	if w.odd {
		return false
	}
	w.text = append(w.text, "}\n"...)
	// Nobody could do anything about a failure.
	_, _ = p.out.Write(w.text)
	return true
}

// string writes a text behind its name, which comes with all that stands around it.
func (w *wide) string(name, value string) {
	w.text = append(w.text, name...)
	w.quote(value)
}

func (w *wide) int(name string, value int64) {
	w.text = strconv.AppendInt(append(w.text, name...), value, 10)
}

// literal are the bytes that slog writes as they are.
var literal = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'
	}
	return table
}()

// quote writes a text. One that slog would escape is odd.
func (w *wide) quote(text string) {
	for i := range len(text) {
		if !literal[text[i]] {
			w.odd = true
			return
		}
	}
	w.text = append(append(append(w.text, '"'), text...), '"')
}

// time writes a time as slog does. A year that RFC 3339 has no room for is odd, and
// so is the zero time, which slog leaves out.
func (w *wide) time(name string, at time.Time) {
	if year := at.Year(); at.IsZero() || year < 0 || year >= 10_000 {
		w.odd = true
		return
	}
	if at != w.at { // The same moment in another zone reads otherwise.
		w.at, w.stamp = at, at.AppendFormat(w.stamp[:0], time.RFC3339Nano)
	}
	w.text = append(append(append(append(w.text, name...), '"'), w.stamp...), '"')
}

// fields writes a handler's own pairs of a name and a value.
func (w *wide) fields(pairs []any) {
	for len(pairs) > 1 && !w.odd {
		name, named := pairs[0].(string)
		if !named {
			break
		}
		w.text = append(w.text, ',')
		w.quote(name)
		switch value := pairs[1].(type) {
		case string:
			w.string(":", value)
		case int:
			w.int(":", int64(value))
		default:
			w.odd = true
		}
		pairs = pairs[2:]
	}
	if len(pairs) > 0 {
		w.odd = true
	}
}

// oneByOne lets one write at a time.
type oneByOne struct {
	mu  sync.Mutex
	out io.Writer
}

func (o *oneByOne) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(text)
}
