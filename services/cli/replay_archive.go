package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// archiveFlags are the flags of `joist replay --archive`.
type archiveFlags struct {
	isOn           bool
	from, to, rule string
}

func (a *archiveFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.isOn, "archive", false, "replay the archive of the cluster's bus instead of DLQ messages")
	f.StringVar(&a.from, "from", "", "with --archive: start of the time range, as 2006-01-02T15:04:05Z")
	f.StringVar(&a.to, "to", "", "with --archive: end of the time range (exclusive)")
	f.StringVar(&a.rule, "rule", "", "with --archive: rule of the bus that receives the events, inbox or audit")
	for _, other := range []string{"queue", "match", "canary", "rate"} {
		cmd.MarkFlagsMutuallyExclusive("archive", other)
	}
}

// archiveReport is the output of `joist replay --archive -o json`.
type archiveReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	DryRun     bool   `json:"dryRun"`
	replay.ArchivePart
	// Noop reports whether all events have expired.
	Noop   bool                   `json:"noop"`
	Replay *replay.ArchiveOutcome `json:"replay,omitempty"`
}

func replayArchive(cmd *cobra.Command, env Env, flags replayFlags) error {
	plan, err := flags.cluster.topologyPlan(cmd, env)
	if err != nil {
		return err
	}
	rule, from, to, err := flags.archive.parse(plan, env.Now())
	if err != nil {
		return err
	}
	config, err := env.openAccount(cmd.Context())
	if err != nil {
		return err
	}
	client := eventbridge.NewFromConfig(config)
	archive, err := replay.FindArchive(cmd.Context(), client, plan, env.Now())
	if err != nil {
		return err
	}
	past, err := archive.SelectPart(cmd.Context(), client, rule, from, to, env.Now())
	if err != nil {
		return err
	}
	out := archiveReport{APIVersion: apiVersion, Kind: "ArchiveReplay", Cluster: plan.Cluster, DryRun: !flags.yes, ArchivePart: past, Noop: past.HasExpired()}
	if flags.yes {
		did, err := env.newPlayer(cmd, client, plan).Replay(cmd.Context(), past)
		if err != nil {
			return err
		}
		out.Replay = &did
	}
	return out.printReport(cmd, flags.format)
}

// parse returns the rule and the time range of the flags.
func (a *archiveFlags) parse(plan topology.Plan, now time.Time) (rule topology.Rule, from, to time.Time, err error) {
	var known []string
	at := slices.IndexFunc(plan.Rules, func(r topology.Rule) bool {
		if r.Bus != plan.Bus {
			return false // A rule of AWS's default bus: Joist archives only its own bus.
		}
		short := strings.TrimPrefix(r.Name, plan.Prefix+"-joist-")
		known = append(known, short)
		return a.rule == r.Name || a.rule == short
	})
	if at < 0 {
		return rule, from, to, usageError(fmt.Errorf("unknown rule %q of the bus of cluster %s (use %s)", a.rule, plan.Cluster, joinChoices(known)), "--rule "+firstNonEmpty(nearestChoice(a.rule, known), known[0]))
	}
	const form = "--from and --to as 2006-01-02T15:04:05Z"
	if from, err = time.Parse(time.RFC3339, a.from); err != nil {
		return rule, from, to, usageError(fmt.Errorf("invalid --from %q: it must be a time such as 2006-01-02T15:04:05Z", a.from), form)
	}
	if to, err = time.Parse(time.RFC3339, a.to); err != nil {
		return rule, from, to, usageError(fmt.Errorf("invalid --to %q: it must be a time such as 2006-01-02T15:04:05Z", a.to), form)
	}
	if !from.Before(to) || to.After(now) {
		return rule, from, to, usageError(errors.New("--from must be before --to, and --to must be in the past"), form)
	}
	return plan.Rules[at], from, to, nil
}

func (o archiveReport) printReport(cmd *cobra.Command, format string) error {
	var err error
	if format == "json" {
		err = printJSON(cmd.OutOrStdout(), o)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), o.formatText())
	}
	switch {
	case err != nil:
	case !o.DryRun && o.Replay.WasInterrupted() && cmd.Context().Err() != nil:
		err = o.interruptError()
	case o.DryRun || o.Replay.WasInterrupted():
		err = errChanges
	}
	return err
}

// interruptError returns the error of a replay that was cancelled by an interrupt.
func (o archiveReport) interruptError() error {
	if o.Replay.Until == nil {
		return &interruptedError{Did: "replay " + o.Replay.Name + " was cancelled before it began", Try: "run the command again"}
	}
	until := o.Replay.Until.Format(time.RFC3339)
	return &interruptedError{Did: "replay " + o.Replay.Name + " was cancelled; the events before " + until + " are replayed", Try: "run the command again with --from " + until}
}

// formatText formats the report as text.
func (o archiveReport) formatText() string {
	var b strings.Builder
	would := "would be"
	if !o.DryRun {
		would = "were"
	}
	whom := "the audit log"
	if o.Service != "" {
		whom = o.Service
	}
	fmt.Fprintf(&b, "Events from %s to %s %s replayed from archive %s to rule %s (read by %s).\n",
		o.From.Format(time.RFC3339), o.To.Format(time.RFC3339), would, o.Archive, o.Rule, whom)
	switch {
	case o.Noop:
		b.WriteString("All events have expired: the service drops them and counts them as stale.\n")
	default:
		fmt.Fprintf(&b, "Events since %s may not have expired: the service may execute them again. It drops older ones.\n", o.ValidSince.Format(time.RFC3339))
	}
	switch {
	case o.DryRun:
		b.WriteString("Nothing was replayed: add --yes to replay.\n")
	case o.Replay.WasInterrupted() && o.Replay.Until != nil:
		fmt.Fprintf(&b, "Stopped: replay %s was cancelled. To resume, run the command again with --from %s.\n", o.Replay.Name, o.Replay.Until.Format(time.RFC3339))
	case o.Replay.WasInterrupted():
		fmt.Fprintf(&b, "Stopped: replay %s was cancelled before it began. Run the command again to resume.\n", o.Replay.Name)
	default:
		fmt.Fprintf(&b, "Replay %s is complete.\n", o.Replay.Name)
	}
	return b.String()
}
