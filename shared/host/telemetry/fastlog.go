package telemetry

import (
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/shared/host"
)

// fastLogger writes the usual log line of a message with the same bytes as slog's JSON handler at a fifth of the
// cost: there may be ten thousand per second. slog writes lines with text that needs escaping or with a field of
// another type.
type fastLogger struct {
	out io.Writer
	// service is the service attribute of each line.
	service string
}

func newFastLogger(o Options) fastLogger { return fastLogger{out: o.Out, service: o.Service} }

// lineWriters reuses the buffers of lines.
var lineWriters = sync.Pool{New: func() any { return &lineWriter{text: make([]byte, 0, 1024)} }}

// lineWriter builds one line.
type lineWriter struct {
	text []byte
	// needsSlog means that slog must write the line.
	needsSlog bool
	// lastTime and lastStamp cache the last formatted time, because the lines of a batch share it.
	lastTime  time.Time
	lastStamp []byte
}

// writeLine writes the line and reports true, or reports false if slog must write it.
func (p fastLogger) writeLine(l *host.LogLine, level slog.Level) bool {
	w := lineWriters.Get().(*lineWriter)
	defer lineWriters.Put(w)
	w.text, w.needsSlog = w.text[:0], false
	w.writeTime(`{"time":`, l.Start.Add(l.Duration))
	w.writeString(`,"level":`, level.String())
	w.writeString(`,"msg":`, logMessage)
	w.writeString(`,"service":`, p.service)
	w.writeString(`,"event.type":`, l.LogFields.Type)
	w.writeString(`,"event.id":`, l.LogFields.ID)
	w.writeString(`,"subject":`, l.LogFields.Subject)
	w.writeString(`,"cluster":`, l.LogFields.Cluster)
	w.writeString(`,"correlation":`, l.LogFields.Correlation)
	w.writeInt(`,"receive_count":`, int64(l.Message.Receives))
	w.writeInt(`,"age_ms":`, l.Age().Milliseconds())
	w.writeString(`,"disposition":`, string(l.Disposition.Action))
	w.writeString(`,"kind":`, string(l.Disposition.Kind))
	w.writeInt(`,"duration_ms":`, l.Duration.Milliseconds())
	if l.Disposition.RetryAfter > 0 {
		w.writeInt(`,"retry_after_ms":`, l.Disposition.RetryAfter.Milliseconds())
	}
	if l.LogFields.Skew > 0 {
		w.writeInt(`,"skew_ms":`, l.LogFields.Skew.Milliseconds())
	}
	w.writePairs(l.LogFields.Pairs)
	if l.Disposition.Reason != "" {
		w.writeString(`,"error":`, l.Disposition.Reason)
	}
	if l.DispositionErr != nil {
		w.writeString(`,"disposition_error":`, l.DispositionErr.Error())
	}
	if w.needsSlog {
		return false
	}
	w.text = append(w.text, "}\n"...)
	// A write error is ignored: there is no other place to report it.
	_, _ = p.out.Write(w.text)
	return true
}

// writeString writes a string value after its name, which includes the JSON punctuation.
func (w *lineWriter) writeString(name, value string) {
	w.text = append(w.text, name...)
	w.writeQuoted(value)
}

func (w *lineWriter) writeInt(name string, value int64) {
	w.text = strconv.AppendInt(append(w.text, name...), value, 10)
}

// isLiteral marks the bytes that slog writes unescaped.
var isLiteral = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'
	}
	return table
}()

// writeQuoted writes a quoted string. It sets needsSlog if slog would escape a byte.
func (w *lineWriter) writeQuoted(text string) {
	for i := range len(text) {
		if !isLiteral[text[i]] {
			w.needsSlog = true
			return
		}
	}
	w.text = append(append(append(w.text, '"'), text...), '"')
}

// writeTime writes a time as slog does. It sets needsSlog for years that RFC 3339 cannot represent and for the zero
// time, which slog omits.
func (w *lineWriter) writeTime(name string, at time.Time) {
	if year := at.Year(); at.IsZero() || year < 0 || year >= 10_000 {
		w.needsSlog = true
		return
	}
	if at != w.lastTime { // Not Equal: the same instant in another zone is formatted differently.
		w.lastTime, w.lastStamp = at, at.AppendFormat(w.lastStamp[:0], time.RFC3339Nano)
	}
	w.text = append(append(append(append(w.text, name...), '"'), w.lastStamp...), '"')
}

// writePairs writes the handler's own names and values.
func (w *lineWriter) writePairs(pairs []any) {
	for len(pairs) > 1 && !w.needsSlog {
		name, named := pairs[0].(string)
		if !named {
			break
		}
		w.text = append(w.text, ',')
		w.writeQuoted(name)
		switch value := pairs[1].(type) {
		case string:
			w.writeString(":", value)
		case int:
			w.writeInt(":", int64(value))
		default:
			w.needsSlog = true
		}
		pairs = pairs[2:]
	}
	if len(pairs) > 0 {
		w.needsSlog = true
	}
}

// lockedWriter serializes writes.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (o *lockedWriter) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(text)
}
