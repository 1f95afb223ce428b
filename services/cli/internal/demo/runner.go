package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// runner runs the demo and prints changes of the cluster and the log lines of the services.
type runner struct {
	out     io.Writer
	verbose bool
	env     *embedded.EmbeddedCluster
	// printed is the last text that was printed for each pod, node and claim.
	printed map[string]string
	// handled are the messages that the services handled, in order.
	handled []handledMessage
	// version is the API server's version at the last call of printChanges.
	version int64
	// warnedAt is the time of the spot interruption warning.
	warnedAt time.Time
}

// handledMessage is a message that a service handled.
type handledMessage struct {
	at   time.Time
	line host.LogLine
}

func newRunner(out io.Writer, verbose bool) *runner {
	return &runner{out: out, verbose: verbose, printed: map[string]string{}}
}

func (w *runner) printTitle(text string) { fmt.Fprintf(w.out, "\n▸ %s\n", text) }

// formatClock formats the time since the start.
func (w *runner) formatClock(at time.Time) string {
	d := at.Sub(w.env.Start).Round(100 * time.Millisecond)
	return fmt.Sprintf("%3d:%04.1f", int(d.Minutes()), d.Seconds()-60*float64(int(d.Minutes())))
}

func (w *runner) printLine(component, format string, args ...any) {
	fmt.Fprintf(w.out, "  %s  %-12s %s\n", w.formatClock(w.env.Now()), component, fmt.Sprintf(format, args...))
}

// printedTypes are the types of messages that are printed without -v.
var printedTypes = []event.Type{
	event.PodsUnschedulableType, event.PlanMadeType, event.LaunchRequestedType, event.LaunchSettledType, event.NodeNoticedType,
	event.TerminateRequestedType, event.InstanceGoneType,
}

// recordMessage records a handled message and prints it if its type is in printedTypes, or
// with -v.
func (w *runner) recordMessage(l host.LogLine) {
	w.handled = append(w.handled, handledMessage{w.env.Now(), l})
	isPrinted := slices.Contains(printedTypes, event.Type(l.LogFields.Type)) && l.Disposition.Action == host.Delete && l.Disposition.Kind == ""
	if !isPrinted && !w.verbose {
		return
	}
	text := l.LogFields.Type + " " + l.LogFields.Subject + formatFields(l.LogFields.Pairs)
	if l.LogFields.Type == "" {
		text = "an AWS event" + formatFields(l.LogFields.Pairs)
	}
	if l.Disposition.Kind != "" {
		text += fmt.Sprintf("  [%s: %s]", l.Disposition.Kind, l.Disposition.Reason)
	}
	w.printLine(l.Service, "%s", text)
}

func formatFields(pairs []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, "  %v=%v", pairs[i], pairs[i+1])
	}
	return b.String()
}

// printChanges prints the changes of the cluster since the last call. It reports whether
// anything has changed.
func (w *runner) printChanges() bool {
	version := w.env.Kube.Version() + int64(len(w.env.Cloud.Effects(0)))
	if w.version == version {
		return false
	}
	w.version = version
	pods := map[string]int{}
	for _, pod := range listObjects[*corev1.Pod](w.env, cluster.Pods) {
		pods[formatPodState(pod)]++
	}
	w.printIfChanged("pods", "kubernetes", "pods: "+formatCounts(pods))
	for _, claim := range listObjects[*karpenter.NodeClaim](w.env, cluster.NodeClaims) {
		w.printIfChanged("claim "+claim.Name, "lifecycle", fmt.Sprintf("NodeClaim %s %s", claim.Name, formatClaimState(claim)))
	}
	for _, class := range listObjects[*karpenter.EC2NodeClass](w.env, cluster.NodeClasses) {
		if class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
			w.printIfChanged("class", "lifecycle", fmt.Sprintf("EC2NodeClass %s is ready: %d subnets, %d images, profile %s",
				class.Name, len(class.Status.Subnets), len(class.Status.AMIs), class.Status.InstanceProfile))
		}
	}
	w.printDeletedClaims()
	return true
}

// printIfChanged prints a text unless it is the last text printed for the key.
func (w *runner) printIfChanged(key, component, text string) {
	if w.printed[key] != text {
		w.printed[key] = text
		w.printLine(component, "%s", text)
	}
}

// printDeletedClaims prints the claims that are deleted.
func (w *runner) printDeletedClaims() {
	alive := map[string]bool{}
	for _, claim := range listObjects[*karpenter.NodeClaim](w.env, cluster.NodeClaims) {
		alive["claim "+claim.Name] = true
	}
	var gone []string
	for key := range w.printed {
		if strings.HasPrefix(key, "claim ") && !alive[key] {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		delete(w.printed, key)
		w.printLine("lifecycle", "Node%s is deleted, instance terminated", strings.Replace(key, "claim", "Claim", 1))
	}
}

func formatPodState(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "terminating"
	case pod.Spec.NodeName == "":
		return "pending"
	case pod.Status.Phase == corev1.PodRunning:
		return "running"
	default:
		return "starting"
	}
}

func formatCounts(of map[string]int) string {
	var parts []string
	for _, state := range []string{"pending", "starting", "running", "terminating"} {
		if of[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of[state], state))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func formatClaimState(c *karpenter.NodeClaim) string {
	conditions := c.Status.Conditions
	isDeleting := c.DeletionTimestamp != nil
	switch {
	case isDeleting && conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating):
		return "is drained, its instance is terminating"
	case isDeleting:
		return "is draining"
	case conditions.IsTrue(karpenter.ConditionTypeInitialized):
		return "is initialized: its node accepts pods"
	case conditions.IsTrue(karpenter.ConditionTypeRegistered):
		return "is registered as node " + c.Status.NodeName
	case c.Status.ProviderID != "":
		return "is launched as " + c.Status.ProviderID
	default:
		return "is created"
	}
}
