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

// replayReport is what `joist replay -o json` prints of a queue.
type replayReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	Service    string `json:"service"`
	From       string `json:"from"`
	To         string `json:"to"`
	DryRun     bool   `json:"dryRun"`
	// Method is how the letters are replayed: move, resend or archive.
	Method replay.Method `json:"method"`
	// All says that the queue holds no more than these letters.
	All bool `json:"all"`
	// Chosen are replayed, and Kept stay.
	Chosen []deadletter.Letter `json:"chosen"`
	Kept   []deadletter.Letter `json:"kept"`
	// Predicted counts the chosen letters by verdict.
	Predicted map[deadletter.Verdict]int `json:"predicted"`
	Replayed  int                        `json:"replayed"`
	// Unseen are ids of chosen letters that were not met again, Returned canaries that
	// died again, Doubtful ids of letters that may be both here and there.
	Unseen   []string            `json:"unseen"`
	Returned []deadletter.Letter `json:"returned"`
	Doubtful []string            `json:"doubtful"`
	// Stopped says why not all is replayed.
	Stopped string `json:"stopped,omitempty"`
	// Archive is the part of the bus's archive that has the chosen letters of the audit
	// log.
	Archive *replay.Past `json:"archive,omitempty"`

	// since is from when on that archive has events.
	since time.Time
}

func (r *replaying) report(all bool) *replayReport {
	out := &replayReport{
		APIVersion: apiVersion, Kind: "Replay", Cluster: r.plan.Cluster, Service: r.queue.Service, From: r.queue.Dead, To: first(r.queue.Name, r.plan.AuditLogGroup), DryRun: !r.flags.yes,
		Method: r.choice.Method, All: all, Chosen: orEmpty(r.choice.Chosen), Kept: orEmpty(r.choice.Kept), Predicted: map[deadletter.Verdict]int{},
		Unseen: []string{}, Returned: []deadletter.Letter{}, Doubtful: []string{},
	}
	for i := range out.Chosen {
		out.Predicted[out.Chosen[i].Predicted.Verdict]++
	}
	return out
}

// orEmpty is a list that JSON shows as [].
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// did puts down what a replay did.
func (o *replayReport) did(did replay.Outcome) {
	o.Replayed, o.Unseen, o.Returned, o.Doubtful = did.Replayed, orEmpty(did.Unseen), orEmpty(did.Returned), orEmpty(did.Doubtful)
	switch {
	case did.Interrupted:
		o.Stopped = "interrupted"
	case len(did.Returned) > 0:
		o.Stopped = fmt.Sprintf("%d of the canaries died again: %s", len(did.Returned), oneLine(did.Returned[0].Reason))
	case len(did.Unseen) > 0:
		o.Stopped = fmt.Sprintf("%d letters were not met again: somebody else reads them, or has dealt with them", len(did.Unseen))
	}
}

// finish prints the report, and the error that ended the replay if there is one.
func (o *replayReport) finish(cmd *cobra.Command, env Env, format string, failed error) error {
	if failed != nil {
		o.Stopped = oneLine(failed.Error())
	}
	var err error
	if format == "json" {
		err = printJSON(cmd.OutOrStdout(), o)
	} else {
		err = o.print(cmd, env.Now())
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case o.Stopped != "" || o.DryRun && len(o.Chosen) > 0:
		return errChanges
	}
	return nil
}

func (o *replayReport) print(cmd *cobra.Command, now time.Time) error {
	var b strings.Builder
	if o.DryRun {
		o.plan(&b, now)
	} else {
		fmt.Fprintf(&b, "%d of %d dead letters of %s are %s again, and gone from %s.\n", o.Replayed, len(o.Chosen), o.Service, o.done(), o.From)
	}
	if o.Stopped != "" {
		fmt.Fprintf(&b, "Stopped: %s. What is left is where it was; the same command goes on.\n", o.Stopped)
	}
	if len(o.Doubtful) > 0 {
		fmt.Fprintf(&b, "These may be both in %s and in %s: %s. Services know the second of a message for what it is.\n", o.To, o.From, strings.Join(o.Doubtful, ", "))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// plan is what a dry run says.
func (o *replayReport) plan(b *strings.Builder, now time.Time) {
	if len(o.Chosen)+len(o.Kept) == 0 {
		fmt.Fprintf(b, "%s holds no dead letter of %s.\n", o.From, o.Service)
		return
	}
	if len(o.Chosen) > 0 {
		b.WriteString(letterTable(o.Chosen, now) + "\n")
	}
	fmt.Fprintf(b, "%d dead letters would be %s to %s again, %s.\n", len(o.Chosen), o.done(), o.To, o.how())
	for _, verdict := range []struct {
		verdict deadletter.Verdict
		means   string
	}{
		{deadletter.Handle, o.handled()}, {deadletter.Noop, "it would drop, as expired, foreign or overtaken"}, {deadletter.Stale, "would be acted on and undone, for nothing waits for them any more"}, {deadletter.Poison, "would be dead again at once"},
	} {
		if n := o.Predicted[verdict.verdict]; n > 0 {
			fmt.Fprintf(b, "  %d %s\n", n, verdict.means)
		}
	}
	if len(o.Kept) > 0 {
		fmt.Fprintf(b, "%d would stay: they do not match, would die again or be undone, or are %s.\n", len(o.Kept), o.spared())
	}
	if o.Archive != nil && len(o.Chosen) > 1 {
		b.WriteString("What the log has of that time already, it will have twice: --match id= with letters that lie close together writes less.\n")
	}
	if !o.All {
		b.WriteString("There are more than --limit: run it again for those.\n")
	}
	if len(o.Chosen) > 0 {
		b.WriteString("Nothing was sent: add --yes to send them.\n")
	}
}

// done is what becomes of letters that are replayed.
func (o *replayReport) done() string {
	if o.Method == replay.Archived {
		return "written"
	}
	return "sent"
}

// handled is what whoever gets a letter does with it.
func (o *replayReport) handled() string {
	if o.Method == replay.Archived {
		return "the log would have"
	}
	return "the service would act on"
}

// how tells the method to people.
func (o *replayReport) how() string {
	switch {
	case o.Method == replay.Move:
		return "by a task of SQS's that moves the whole queue"
	case o.Archive != nil:
		return fmt.Sprintf("with all that was said from %s to %s (%s), by the archive %s, which has some %d events in all",
			o.Archive.From.Format(time.RFC3339), o.Archive.To.Format(time.RFC3339), o.Archive.To.Sub(o.Archive.From), o.Archive.Archive, o.Archive.Events)
	case o.Method == replay.Archived:
		return "by the bus's archive"
	}
	return "one by one, for not all of the queue is meant or can be moved as it lies there"
}

// spared are letters that no match chooses.
func (o *replayReport) spared() string {
	if o.Method == replay.Archived {
		return "not for certain in the archive, which has what was said from " + o.since.UTC().Format(time.RFC3339) + " until " + replay.ArchiveDelay.String() + " ago"
	}
	return "cut off or forged"
}

// progress tells to stderr how far a replay is, at most once a second.
func progress(cmd *cobra.Command, env Env, of int) func(done int) {
	var told time.Time
	return func(done int) {
		if now := env.Now(); done == of || now.Sub(told) >= time.Second {
			told = now
			fmt.Fprintf(cmd.ErrOrStderr(), "replayed %d of %d\n", done, of)
		}
	}
}
