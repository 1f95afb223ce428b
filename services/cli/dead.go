package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// limitDefault and limitMax are how many letters of a queue are read: each may have a
// mebibyte, and no more than so many may be in flight at once on a standard queue.
const (
	limitDefault = 1000
	limitMax     = 100_000
)

// deadFlags are those of the verbs of `joist dead`.
type deadFlags struct {
	cluster clusterFlags
	fence   fenceFlags
	queues  []string
	limit   int
	format  string
}

func (d *deadFlags) add(cmd *cobra.Command) {
	d.cluster.add(cmd)
	d.fence.add(cmd)
	cmd.Flags().StringArrayVar(&d.queues, "queue", nil, "whose dead letters are meant: a service's, such as planner, or those of the audit log (audit); may be repeated (default: all)")
	cmd.Flags().IntVar(&d.limit, "limit", limitDefault, "how many letters of a queue to read at most")
}

// deadList is what `joist dead list -o json` prints.
type deadList struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Cluster    string              `json:"cluster"`
	At         time.Time           `json:"at"`
	Letters    []deadletter.Letter `json:"letters"`
	// Partial names the services whose queues hold more than the limit.
	Partial []string `json:"partial"`
}

// looked is what every verb says that receives dead letters.
const looked = "Letters are received and given back at once: nothing is deleted, and SQS's count of receives grows by one. What is in\n" +
	"flight with somebody else at that moment is not seen.\n\n"

// deadRights is what every verb needs that reads dead letters.
var deadRights = "It needs sqs:GetQueueUrl, sqs:GetQueueAttributes, sqs:ReceiveMessage and sqs:ChangeMessageVisibility on the\n" +
	"dead-letter queues. Plans and launches that have not expired (which they do " + life(event.PlanMadeType) + " and " + life(event.LaunchRequestedType) + "\n" +
	"after they were said) are held against Kubernetes as it is, if whoever asks may get the namespace kube-system and the\n" +
	"ConfigMap joist-outbox, and list NodeClaims.\n\n"

// life is how long a message of a type may be obeyed, in words.
func life(t event.Type) string {
	spec, err := t.Spec()
	if err != nil {
		return "some time" // A type of ours always has one.
	}
	return fmt.Sprintf("%d minutes", int(spec.TTL.Minutes()))
}

func deadCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List and show dead letters without consuming them, with what a replay would do",
		Long: "Dead reads the dead-letter queues of a cluster. Each message is shown with the reason why it is there and with what\n" +
			"would become of it if it were sent again now, as the service itself would decide it: handle, noop (expired, or of\n" +
			"another cluster: dropped and counted), stale (done, and undone: what asked for it is gone), poison (dead again at\n" +
			"once) or cut (too much of it is lost).\n\n" + looked + deadRights +
			"Exit codes of its verbs: 0 no letter, or the letter is shown; 2 there are letters; 1 an error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(deadListCommand(env), deadShowCommand(env))
	return cmd
}

func deadListCommand(env Env) *cobra.Command {
	var flags deadFlags
	cmd := &cobra.Command{
		Use:     "list --cluster NAME",
		Short:   "List dead letters with their reasons and what a replay would do",
		Example: "  joist dead list --cluster prod\n  joist dead list --cluster prod --queue planner -o json",
		Args:    cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return listDead(cmd, env, flags) }
	flags.add(cmd)
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func deadShowCommand(env Env) *cobra.Command {
	var flags deadFlags
	cmd := &cobra.Command{
		Use:     "show ID --cluster NAME",
		Short:   "Show one dead letter whole, by SQS's id of it or the event's",
		Example: "  joist dead show 5fea7756-0ea4-451a-a703-a558b933e274 --cluster prod --queue planner",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return showDead(cmd, env, flags, args) }
	flags.add(cmd)
	formatFlag(cmd, &flags.format, "text", "json")
	return cmd
}

// readDead reads the dead letters that the flags mean.
func readDead(cmd *cobra.Command, env Env, flags deadFlags) (deadList, error) {
	list := deadList{APIVersion: apiVersion, Kind: "DeadLetterList", At: env.Now().UTC(), Letters: []deadletter.Letter{}, Partial: []string{}}
	if flags.limit < 1 || flags.limit > limitMax {
		return list, usage(fmt.Errorf("%d letters are asked for", flags.limit), fmt.Sprintf("--limit from 1 to %d", limitMax))
	}
	plan, err := flags.cluster.plan(cmd, env)
	if err != nil {
		return list, err
	}
	chosen, err := pick(plan, flags.queues)
	if err != nil {
		return list, err
	}
	places, _, err := env.places(cmd.Context())
	if err != nil {
		return list, err
	}
	list.Cluster = plan.Cluster
	reader := deadletter.Reader{Cluster: event.Cluster{Name: plan.Cluster}, World: env.world(cmd.Context(), flags.fence)}
	type answer struct {
		letters []deadletter.Letter
		all     bool
		err     error
	}
	answers := make([]answer, len(chosen))
	var reading sync.WaitGroup
	for i, q := range chosen {
		reading.Go(func() {
			a := &answers[i]
			a.letters, a.all, a.err = readQueue(cmd, env, places, reader, q, flags.limit)
		})
	}
	reading.Wait()
	for i, a := range answers {
		if a.err != nil {
			return list, a.err
		}
		list.Letters = append(list.Letters, a.letters...)
		if !a.all {
			list.Partial = append(list.Partial, chosen[i].Service)
		}
	}
	return list, nil
}

// readQueue reads the letters of one dead-letter queue, oldest first.
func readQueue(cmd *cobra.Command, env Env, places queues.Places, reader deadletter.Reader, q topology.Queue, limit int) ([]deadletter.Letter, bool, error) {
	dead, err := places.Find(cmd.Context(), q.Dead)
	if err != nil {
		return nil, false, err
	}
	messages, all, err := deadletter.Look(cmd.Context(), dead.Queue, limit, reportReading(cmd, env, q.Service))
	if err != nil {
		return nil, false, fmt.Errorf("looking at dead letters: %w", err)
	}
	reader.Service = q.Service
	letters := make([]deadletter.Letter, 0, len(messages))
	for _, m := range messages {
		letters = append(letters, reader.Read(m, env.Now()))
	}
	slices.SortFunc(letters, deadletter.Oldest)
	return letters, all, nil
}

// reportReading prints to stderr how many messages of a dead-letter queue are read, at most once
// a second, so that a short list prints nothing.
func reportReading(cmd *cobra.Command, env Env, service string) func(read int) {
	last := env.Now()
	return func(read int) {
		if now := env.Now(); now.Sub(last) >= time.Second {
			last = now
			fmt.Fprintf(cmd.ErrOrStderr(), "read %d messages of the dead-letter queue of %s\n", read, service)
		}
	}
}

func listDead(cmd *cobra.Command, env Env, flags deadFlags) error {
	list, err := readDead(cmd, env, flags)
	if err != nil {
		return err
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), list)
	} else {
		err = printDead(cmd, list, env.Now())
	}
	if err == nil && len(list.Letters) > 0 {
		err = errChanges
	}
	return err
}

func printDead(cmd *cobra.Command, list deadList, now time.Time) error {
	for _, service := range list.Partial {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s has more dead letters than --limit\n", service)
	}
	if len(list.Letters) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "no message of %s is dead\n", list.Cluster)
		return err
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), letterTable(list.Letters, now))
	return err
}

// letterTable is how letters are listed.
func letterTable(letters []deadletter.Letter, now time.Time) string {
	var rows [][]string
	for i := range letters {
		l := &letters[i]
		expires := "-"
		switch {
		case l.Expires == nil:
		case l.Expires.After(now):
			expires = "in " + age(l.Expires.Sub(now))
		default:
			expires = age(now.Sub(*l.Expires)) + " ago"
		}
		rows = append(rows, []string{
			l.ID, l.Service, first(l.Type, "?"), age(now.Sub(l.Dead)), expires, first(l.Kind, string(l.Origin)), string(l.Predicted.Verdict), short(l.Reason, reasonWidth),
		})
	}
	return report.Columns([]string{"ID", "SERVICE", "TYPE", "AGE", "EXPIRES", "KIND", "REPLAY", "REASON"}, rows)
}

// shownLetter is what `joist dead show -o json` prints: the letter, with its body as
// JSON where it is any, and else as text.
type shownLetter struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Letter     deadletter.Letter `json:"letter"`
	Body       json.RawMessage   `json:"body"`
}

func showDead(cmd *cobra.Command, env Env, flags deadFlags, args []string) error {
	if len(args) != 1 {
		return usage(errors.New("one id is needed"), "joist dead show ID, with an id that joist dead list prints")
	}
	list, err := readDead(cmd, env, flags)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list.Letters, func(l deadletter.Letter) bool { return l.ID == args[0] || l.EventID == args[0] })
	if at < 0 {
		return fault.F("looking for the dead letter "+args[0], fault.Missing, "none of %d letters has that id", len(list.Letters)).
			WithHint("joist dead list; a letter that somebody else reads at this moment is not seen, and --limit bounds how many are")
	}
	l := list.Letters[at]
	if flags.format == "json" {
		body := json.RawMessage(l.Body())
		if !json.Valid(body) {
			body, _ = json.Marshal(string(l.Body())) // Texts always can be.
		}
		return printJSON(cmd.OutOrStdout(), shownLetter{apiVersion, "DeadLetter", l, body})
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), shown(l, env.Now()))
	return err
}

// shown is a letter as a page.
func shown(l deadletter.Letter, now time.Time) string {
	var b strings.Builder
	// No text of a message may add a line.
	line := func(name, value string) {
		if value = oneLine(value); value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name+":", value)
		}
	}
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	line("ID", l.ID)
	line("Service", l.Service)
	line("Origin", string(l.Origin))
	line("Kind", l.Kind)
	line("Reason", l.Reason)
	line("Type", l.Type)
	line("Event", l.EventID)
	line("Subject", l.Subject)
	line("From", l.From)
	line("Said", at(l.Said))
	line("Expires", at(l.Expires))
	line("Dead since", fmt.Sprintf("%s (%s)", l.Dead.UTC().Format(time.RFC3339), age(now.Sub(l.Dead))))
	line("Receives", strconv.Itoa(l.Receives))
	line("Bytes", strconv.Itoa(l.Bytes))
	line("Replay", strings.TrimSuffix(string(l.Predicted.Verdict)+": "+l.Predicted.Why, ": "))
	b.WriteString("\n" + strings.TrimRight(string(l.Body()), "\n") + "\n")
	return b.String()
}
