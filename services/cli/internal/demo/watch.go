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

// watch looks on and tells. It reads the models and the services' own log
// lines, and takes no part.
type watch struct {
	out     io.Writer
	verbose bool
	world   *embedded.World
	// said is the last thing that was said of each pod, node and claim.
	said map[string]string
	// heard are the log lines of the services, in order.
	heard []heard
	// version is the API server's when look last looked.
	version int64
	// warned is when AWS gave its warning.
	warned time.Time
}

// heard is one message that a service handled.
type heard struct {
	at   time.Time
	line host.LogLine
}

func newWatch(out io.Writer, verbose bool) *watch {
	return &watch{out: out, verbose: verbose, said: map[string]string{}}
}

func (w *watch) title(text string) { fmt.Fprintf(w.out, "\n▸ %s\n", text) }

// clock is how long the story has lasted.
func (w *watch) clock(at time.Time) string {
	d := at.Sub(w.world.Start).Round(100 * time.Millisecond)
	return fmt.Sprintf("%3d:%04.1f", int(d.Minutes()), d.Seconds()-60*float64(int(d.Minutes())))
}

func (w *watch) say(who, format string, args ...any) {
	fmt.Fprintf(w.out, "  %s  %-12s %s\n", w.clock(w.world.Now()), who, fmt.Sprintf(format, args...))
}

// telling are the messages worth a line of their own; the others are shown by
// -v.
var telling = []event.Type{
	event.PodsUnschedulableType, event.PlanMadeType, event.LaunchRequestedType, event.LaunchSettledType, event.NodeNoticedType,
	event.TerminateRequestedType, event.InstanceGoneType,
}

// line takes the wide log line of every message that a service handles.
func (w *watch) line(l host.LogLine) {
	w.heard = append(w.heard, heard{w.world.Now(), l})
	worth := slices.Contains(telling, event.Type(l.LogFields.Type)) && l.Disposition.Action == host.Delete && l.Disposition.Kind == ""
	if !worth && !w.verbose {
		return
	}
	text := l.LogFields.Type + " " + l.LogFields.Subject + fields(l.LogFields.Pairs)
	if l.LogFields.Type == "" {
		text = "an AWS event" + fields(l.LogFields.Pairs)
	}
	if l.Disposition.Kind != "" {
		text += fmt.Sprintf("  [%s: %s]", l.Disposition.Kind, l.Disposition.Reason)
	}
	w.say(l.Service, "%s", text)
}

func fields(pairs []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, "  %v=%v", pairs[i], pairs[i+1])
	}
	return b.String()
}

// look says what has changed in the cluster since the last look, and reports
// whether anything has.
func (w *watch) look() bool {
	version := w.world.Kube.Version() + int64(len(w.world.Cloud.Effects(0)))
	if w.version == version {
		return false
	}
	w.version = version
	pods := map[string]int{}
	for _, pod := range all[*corev1.Pod](w.world, cluster.Pods) {
		pods[podState(pod)]++
	}
	w.changed("pods", "kubernetes", "pods: "+counts(pods))
	for _, claim := range all[*karpenter.NodeClaim](w.world, cluster.NodeClaims) {
		w.changed("claim "+claim.Name, "lifecycle", fmt.Sprintf("NodeClaim %s %s", claim.Name, claimState(claim)))
	}
	for _, class := range all[*karpenter.EC2NodeClass](w.world, cluster.NodeClasses) {
		if class.Status.Conditions.True(karpenter.ConditionTypeReady) {
			w.changed("class", "lifecycle", fmt.Sprintf("EC2NodeClass %s is ready: %d subnets, %d images, profile %s",
				class.Name, len(class.Status.Subnets), len(class.Status.AMIs), class.Status.InstanceProfile))
		}
	}
	w.vanished()
	return true
}

// changed says something of a thing when it is not what was said last.
func (w *watch) changed(key, who, text string) {
	if w.said[key] != text {
		w.said[key] = text
		w.say(who, "%s", text)
	}
}

// vanished says which claims are gone.
func (w *watch) vanished() {
	alive := map[string]bool{}
	for _, claim := range all[*karpenter.NodeClaim](w.world, cluster.NodeClaims) {
		alive["claim "+claim.Name] = true
	}
	var gone []string
	for key := range w.said {
		if strings.HasPrefix(key, "claim ") && !alive[key] {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		delete(w.said, key)
		w.say("lifecycle", "Node%s is deleted, instance terminated", strings.Replace(key, "claim", "Claim", 1))
	}
}

func podState(pod *corev1.Pod) string {
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

func counts(of map[string]int) string {
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

func claimState(c *karpenter.NodeClaim) string {
	conditions := c.Status.Conditions
	going := c.DeletionTimestamp != nil
	switch {
	case going && conditions.True(karpenter.ConditionTypeInstanceTerminating):
		return "is drained, its instance is terminating"
	case going:
		return "is draining"
	case conditions.True(karpenter.ConditionTypeInitialized):
		return "is initialized: its node accepts pods"
	case conditions.True(karpenter.ConditionTypeRegistered):
		return "is registered as node " + c.Status.NodeName
	case c.Status.ProviderID != "":
		return "is launched as " + c.Status.ProviderID
	default:
		return "is created"
	}
}
