package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/servicelog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// recorder collects the logs of a run: the audit log of facts, and the lines of the services.
type recorder struct {
	facts, lines []byte
	seen         map[string]bool
	err          error
}

func newRecorder() *recorder { return &recorder{seen: map[string]bool{}} }

// recordLine records a handled message, and its fact at the first time.
func (r *recorder) recordLine(l host.LogLine) {
	line := servicelog.HandledLine{
		Time: l.Start.Add(l.Duration).UTC(), Level: "INFO", Msg: "handled", Service: l.Service, EventType: l.LogFields.Type, EventID: l.LogFields.ID, Subject: l.LogFields.Subject,
		Cluster: l.LogFields.Cluster, Correlation: l.LogFields.Correlation, ReceiveCount: l.Message.Receives, AgeMS: l.Age().Milliseconds(),
		Disposition: string(l.Disposition.Action), Kind: string(l.Disposition.Kind), DurationMS: l.Duration.Milliseconds(),
		RetryAfterMS: l.Disposition.RetryAfter.Milliseconds(), Error: l.Disposition.Reason,
	}
	r.lines = r.appendEntry(r.lines, line)
	e, err := event.Decode(l.Message.Body)
	if err != nil {
		return // AWS's events have no envelope.
	}
	if spec, err := e.Type.Spec(); err != nil || !spec.IsFact() || r.seen[e.ID] {
		return
	}
	r.seen[e.ID] = true
	r.facts = r.appendEntry(r.facts, servicelog.AuditFact{DetailType: string(e.Type), Source: e.Source, Time: e.Time, Detail: e})
}

func (r *recorder) appendEntry(to []byte, entry any) []byte {
	text, err := servicelog.Encode(entry)
	if err != nil {
		r.err = err
	}
	return append(to, text...)
}

// write writes the documents of the bucket and the logs into a directory.
func (r *recorder) write(ctx context.Context, env *embedded.EmbeddedCluster, name string) error {
	if r.err != nil {
		return r.err
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return fault.E("creating the directory of the records", fault.Invalid, err).WithHint("--record with a directory that you may write")
	}
	to := records.Directory(name)
	for object, err := range env.Blobs.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("recording the documents: %w", err)
		}
		data, err := env.Blobs.Get(ctx, object.Key)
		if err == nil {
			err = to.Put(ctx, object.Key, data)
		}
		if err == nil {
			err = to.SetTime(object.Key, object.LastWritten)
		}
		if err != nil {
			return fmt.Errorf("recording the documents: %w", err)
		}
	}
	for file, data := range map[string][]byte{"facts.jsonl": r.facts, "services.jsonl": r.lines} {
		if err := os.WriteFile(filepath.Join(name, file), data, 0o644); err != nil {
			return fault.E("writing the logs", fault.Invalid, err)
		}
	}
	return nil
}
