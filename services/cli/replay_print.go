package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
)

// replayReport is the output of `joist replay -o json` for a queue.
type replayReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	Service    string `json:"service"`
	From       string `json:"from"`
	To         string `json:"to"`
	DryRun     bool   `json:"dryRun"`
	// Method is how the messages are replayed: move, resend or archive.
	Method replay.Method `json:"method"`
	// All reports whether the queue has no other messages.
	All bool `json:"all"`
	// Chosen are the messages to replay; Kept stay in the queue.
	Chosen []deadletter.DeadMessage `json:"chosen"`
	Kept   []deadletter.DeadMessage `json:"kept"`
	// Predicted counts the chosen messages by disposition.
	Predicted map[deadletter.Disposition]int `json:"predicted"`
	Replayed  int                            `json:"replayed"`
	// NotReceived are the IDs of chosen messages that were not received again, Returned the
	// canaries that returned to the DLQ, Unhandled the number of messages in the service's queue of which some may be
	// canaries, and PossibleDuplicates the IDs of messages that may be in both queues.
	NotReceived        []string                 `json:"notReceived"`
	Returned           []deadletter.DeadMessage `json:"returned"`
	Unhandled          int                      `json:"unhandled,omitempty"`
	PossibleDuplicates []string                 `json:"possibleDuplicates"`
	// Stopped is the reason why not all messages were replayed.
	Stopped string `json:"stopped,omitempty"`
	// Archive is the part of the bus archive with the chosen messages of the audit log.
	Archive *replay.ArchivePart `json:"archive,omitempty"`

	// isInterrupted reports whether the caller stopped the replay.
	isInterrupted bool
	// since is the time of the first event of that archive.
	since time.Time
}

func (r *queueReplay) newReport(all bool) *replayReport {
	out := &replayReport{
		APIVersion: apiVersion, Kind: "Replay", Cluster: r.plan.Cluster, Service: r.queue.Service, From: r.queue.Dead, To: firstNonEmpty(r.queue.Name, r.plan.AuditLogGroup), DryRun: !r.flags.yes,
		Method: r.choice.Method, All: all, Chosen: orEmpty(r.choice.Chosen), Kept: orEmpty(r.choice.Kept), Predicted: map[deadletter.Disposition]int{},
		NotReceived: []string{}, Returned: []deadletter.DeadMessage{}, PossibleDuplicates: []string{},
	}
	for i := range out.Chosen {
		out.Predicted[out.Chosen[i].Predicted.Disposition]++
	}
	return out
}

// orEmpty returns a list that is [] in JSON, never null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// recordOutcome copies the outcome of a replay to the report.
func (o *replayReport) recordOutcome(did replay.Outcome) {
	o.Replayed, o.NotReceived, o.Returned, o.PossibleDuplicates = did.Replayed, orEmpty(did.NotReceived), orEmpty(did.Returned), orEmpty(did.PossibleDuplicates)
	o.Unhandled = did.Unhandled
	switch {
	case did.Interrupted:
		o.Stopped = "interrupted"
	case len(did.Returned) > 0:
		o.Stopped = fmt.Sprintf("%d canaries returned to the DLQ: %s", len(did.Returned), oneLine(did.Returned[0].Reason))
	case did.Unhandled > 0:
		o.Stopped = fmt.Sprintf("the canaries may be not yet handled: %s has %d messages. See the errors in the log of %s, and wait until joist queues shows that the queue is empty. "+
			"If it always has messages, set a longer --canary-wait, or leave out --canary", o.To, did.Unhandled, o.Service)
	case len(did.NotReceived) > 0:
		o.Stopped = fmt.Sprintf("%d messages were not received again: another consumer has them in flight or has handled them", len(did.NotReceived))
	}
}

// printReport prints the report. It returns the error of the replay, or errChanges.
func (o *replayReport) printReport(cmd *cobra.Command, env Env, format string, failed error) error {
	if failed != nil {
		o.Stopped = oneLine(failed.Error())
	}
	var err error
	if format == "json" {
		err = printJSON(cmd.OutOrStdout(), o)
	} else {
		err = o.printText(cmd, env.Now())
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case o.isInterrupted:
		return &interruptedError{
			Did: fmt.Sprintf("%d of %d DLQ messages of %s were %s again and deleted from %s; the others are still there", o.Replayed, len(o.Chosen), o.Service, o.describeOutcome(), o.From),
			Try: "run the command again to resume",
		}
	case o.Stopped != "" || o.DryRun && len(o.Chosen) > 0:
		return errChanges
	}
	return nil
}

func (o *replayReport) printText(cmd *cobra.Command, now time.Time) error {
	var b strings.Builder
	if o.DryRun {
		if err := o.printDryRun(cmd.OutOrStdout(), &b, now); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(&b, "%d of %d DLQ messages of %s were %s again and deleted from %s.\n", o.Replayed, len(o.Chosen), o.Service, o.describeOutcome(), o.From)
	}
	if o.Stopped != "" {
		fmt.Fprintf(&b, "Stopped: %s. The remaining messages are still in the DLQ; run the command again to resume.\n", o.Stopped)
	}
	if len(o.PossibleDuplicates) > 0 {
		fmt.Fprintf(&b, "Possibly in both %s and %s: %s. Services drop duplicates.\n", o.To, o.From, strings.Join(o.PossibleDuplicates, ", "))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// printDryRun prints the messages that would be replayed, and formats the rest of the result.
func (o *replayReport) printDryRun(out io.Writer, b *strings.Builder, now time.Time) error {
	if len(o.Chosen)+len(o.Kept) == 0 {
		fmt.Fprintf(b, "%s has no DLQ messages of %s.\n", o.From, o.Service)
		return nil
	}
	if len(o.Chosen) > 0 {
		b.WriteString("\n")
		if err := printMessageTable(out, o.Chosen, now); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, "%d DLQ messages would be %s to %s again %s.\n", len(o.Chosen), o.describeOutcome(), o.To, o.describeMethod())
	for _, row := range []struct {
		disposition deadletter.Disposition
		means       string
	}{
		{deadletter.Handle, o.describeHandling()}, {deadletter.Noop, "it would drop: expired, of another cluster, or superseded"}, {deadletter.Stale, "would be launched and terminated again: their NodeClaims are gone"}, {deadletter.Poison, "would return to the DLQ at once"},
	} {
		if n := o.Predicted[row.disposition]; n > 0 {
			fmt.Fprintf(b, "  %d %s\n", n, row.means)
		}
	}
	if len(o.Kept) > 0 {
		fmt.Fprintf(b, "%d would stay: they do not match, are predicted as poison or stale, or are %s.\n", len(o.Kept), o.describeSkipped())
	}
	if o.Archive != nil && len(o.Chosen) > 1 {
		b.WriteString("The log will have duplicates of the facts of that time that it already has. Select messages that are close in time with --match id= to get fewer.\n")
	}
	if !o.All {
		b.WriteString("The queue has more messages than --limit: run the command again for the rest.\n")
	}
	if len(o.Chosen) > 0 {
		b.WriteString("Nothing was sent: add --yes to send the messages.\n")
	}
	return nil
}

// describeOutcome returns the participle for replayed messages.
func (o *replayReport) describeOutcome() string {
	if o.Method == replay.Archived {
		return "written"
	}
	return "sent"
}

// describeHandling returns what the receiver does with a message.
func (o *replayReport) describeHandling() string {
	if o.Method == replay.Archived {
		return "the log would receive"
	}
	return "the service would handle"
}

// describeMethod formats the method.
func (o *replayReport) describeMethod() string {
	switch {
	case o.Method == replay.Move:
		return "with an SQS message move task of the whole queue"
	case o.Archive != nil:
		return fmt.Sprintf("with all events from %s to %s (%s) of archive %s, which has about %d events",
			o.Archive.From.Format(time.RFC3339), o.Archive.To.Format(time.RFC3339), o.Archive.To.Sub(o.Archive.From), o.Archive.Archive, o.Archive.Events)
	case o.Method == replay.Archived:
		return "from the bus archive"
	}
	return "one by one, because not every message of the queue is selected or can be moved unchanged"
}

// describeSkipped returns why messages cannot be chosen.
func (o *replayReport) describeSkipped() string {
	if o.Method == replay.Archived {
		return "possibly missing in the archive, which has events from " + o.since.UTC().Format(time.RFC3339) + " to " + replay.ArchiveDelay.String() + " ago"
	}
	return "truncated or forged"
}

// reportProgress returns a function that prints the progress of a replay to stderr, at most
// once a second: a replay changes something, so also a short one has a line. A terminal shows the
// last one only.
func reportProgress(cmd *cobra.Command, env Env, of int) func(done int) {
	var last time.Time
	return func(done int) {
		if o, ok := cmd.ErrOrStderr().(*output); ok && o.rewrites && done < of {
			o.setStatus(fmt.Sprintf("replayed %d of %d", done, of))
			return
		}
		if now := env.Now(); done == of || now.Sub(last) >= time.Second {
			last = now
			fmt.Fprintf(cmd.ErrOrStderr(), "replayed %d of %d\n", done, of)
		}
	}
}
