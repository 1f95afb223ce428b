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

// archiveFlags are those of `joist replay --archive`.
type archiveFlags struct {
	on             bool
	from, to, rule string
}

func (a *archiveFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.on, "archive", false, "replay what was said on the cluster's bus, rather than dead letters")
	f.StringVar(&a.from, "from", "", "with --archive: replay what was said from this time on, as 2006-01-02T15:04:05Z")
	f.StringVar(&a.to, "to", "", "with --archive: and before this time")
	f.StringVar(&a.rule, "rule", "", "with --archive: the one rule of the bus that is to get it, inbox or audit")
	for _, other := range []string{"queue", "match", "canary", "rate"} {
		cmd.MarkFlagsMutuallyExclusive("archive", other)
	}
}

// archiveReport is what `joist replay --archive -o json` prints.
type archiveReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	DryRun     bool   `json:"dryRun"`
	replay.Past
	// Noop says that all of it has expired.
	Noop   bool             `json:"noop"`
	Replay *replay.Replayed `json:"replay,omitempty"`
}

func replayArchive(cmd *cobra.Command, env Env, flags replayFlags) error {
	plan, err := flags.cluster.plan(cmd, env)
	if err != nil {
		return err
	}
	rule, from, to, err := flags.archive.read(plan, env.Now())
	if err != nil {
		return err
	}
	config, err := env.account(cmd.Context())
	if err != nil {
		return err
	}
	client := eventbridge.NewFromConfig(config)
	archive, err := replay.Find(cmd.Context(), client, plan, env.Now())
	if err != nil {
		return err
	}
	past, err := archive.Select(cmd.Context(), client, rule, from, to, env.Now())
	if err != nil {
		return err
	}
	out := archiveReport{APIVersion: apiVersion, Kind: "ArchiveReplay", Cluster: plan.Cluster, DryRun: !flags.yes, Past: past, Noop: past.Noop()}
	if flags.yes {
		did, err := env.player(cmd, client, plan).Play(cmd.Context(), past)
		if err != nil {
			return err
		}
		out.Replay = &did
	}
	return out.finish(cmd, flags.format)
}

// read finds the rule and the times that are meant.
func (a *archiveFlags) read(plan topology.Plan, now time.Time) (rule topology.Rule, from, to time.Time, err error) {
	var known []string
	at := slices.IndexFunc(plan.Rules, func(r topology.Rule) bool {
		if r.Bus != plan.Bus {
			return false // Its events are AWS's, which no archive of ours has.
		}
		short := strings.TrimPrefix(r.Name, plan.Prefix+"-joist-")
		known = append(known, short)
		return a.rule == r.Name || a.rule == short
	})
	if at < 0 {
		return rule, from, to, usage(fmt.Errorf("the bus of %s has no rule %q", plan.Cluster, a.rule), "--rule with one of "+strings.Join(known, ", "))
	}
	const form = "--from and --to as 2006-01-02T15:04:05Z"
	if from, err = time.Parse(time.RFC3339, a.from); err != nil {
		return rule, from, to, usage(fmt.Errorf("--from %q is no time", a.from), form)
	}
	if to, err = time.Parse(time.RFC3339, a.to); err != nil {
		return rule, from, to, usage(fmt.Errorf("--to %q is no time", a.to), form)
	}
	if !from.Before(to) || to.After(now) {
		return rule, from, to, usage(errors.New("--from is not before --to, or --to is not in the past"), form)
	}
	return plan.Rules[at], from, to, nil
}

func (o archiveReport) finish(cmd *cobra.Command, format string) error {
	var err error
	if format == "json" {
		err = printJSON(cmd.OutOrStdout(), o)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), o.text())
	}
	if err == nil && (o.DryRun || o.Replay.Interrupted()) {
		err = errChanges
	}
	return err
}

// text is the report for people.
func (o archiveReport) text() string {
	var b strings.Builder
	would := "would be"
	if !o.DryRun {
		would = "were"
	}
	whom := "the audit log"
	if o.Service != "" {
		whom = o.Service
	}
	fmt.Fprintf(&b, "What was said from %s to %s %s replayed from the archive %s to the rule %s alone, which %s reads.\n",
		o.From.Format(time.RFC3339), o.To.Format(time.RFC3339), would, o.Archive, o.Rule, whom)
	switch {
	case o.Noop:
		b.WriteString("All of it has expired: on the world it is a no-op, and each message is counted as stale.\n")
	default:
		fmt.Fprintf(&b, "What was said since %s may not have expired: it may be acted on again. What is older is a no-op.\n", o.Obeyed.Format(time.RFC3339))
	}
	switch {
	case o.DryRun:
		b.WriteString("Nothing was replayed: add --yes to replay it.\n")
	case o.Replay.Interrupted() && o.Replay.Until != nil:
		fmt.Fprintf(&b, "Stopped: the replay %s was cancelled. To go on: the same command with --from %s.\n", o.Replay.Name, o.Replay.Until.Format(time.RFC3339))
	case o.Replay.Interrupted():
		fmt.Fprintf(&b, "Stopped: the replay %s was cancelled before it began. To go on: the same command.\n", o.Replay.Name)
	default:
		fmt.Fprintf(&b, "The replay %s is complete.\n", o.Replay.Name)
	}
	return b.String()
}
