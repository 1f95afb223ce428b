package demo

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// printNodes prints a table of the nodes with their prices and numbers of pods.
func (w *runner) printNodes() {
	onNode := map[string]int{}
	for _, pod := range listObjects[*corev1.Pod](w.env, cluster.Pods) {
		onNode[pod.Spec.NodeName]++
	}
	price := map[string]float64{}
	for _, r := range w.env.Cloud.Records() {
		price[karpenter.ProviderID{Zone: r.Zone, InstanceID: r.ID}.String()] = r.PricePerHour
	}
	t := w.newTable("node", "type", "zone", "capacity type", "$/h", "pods")
	total := 0.0
	for _, node := range listObjects[*corev1.Node](w.env, cluster.Nodes) {
		dollars := price[node.Spec.ProviderID]
		total += dollars
		t.AppendRow(table.Row{
			node.Name, node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone],
			node.Labels[karpenter.CapacityTypeLabelKey], fmt.Sprintf("%.4f", dollars), onNode[node.Name],
		})
	}
	t.AppendFooter(table.Row{"", "", "", "", fmt.Sprintf("%.4f", total), w.countRunning()})
	fmt.Fprintln(w.out)
	t.Render()
}

// printTrace prints every message with the correlation ID of the first launch.
func (w *runner) printTrace() {
	var correlation string
	for _, h := range w.handled {
		if event.Type(h.line.LogFields.Type) == event.LaunchRequestedType {
			correlation = h.line.LogFields.Correlation
			break
		}
	}
	pods := listObjects[*corev1.Pod](w.env, cluster.Pods)
	if correlation == "" || len(pods) == 0 {
		return
	}
	fmt.Fprintf(w.out, "\nTrace of pod %s: every message with correlation ID %.12s…\n", pods[0].Name, correlation)
	t := w.newTable("at", "handled by", "message", "subject", "disposition")
	for _, h := range w.handled {
		if n := h.line.LogFields; n.Correlation == correlation {
			t.AppendRow(table.Row{w.formatClock(h.at), h.line.Service, n.Type, shortenSubject(n.Subject), h.line.Disposition.Action})
		}
	}
	t.AppendRow(table.Row{w.formatClock(w.env.Now()), "kube-scheduler", "pod is running", pods[0].Spec.NodeName, ""})
	t.Render()
}

func shortenSubject(subject string) string {
	const lengthMax = 40
	if len(subject) > lengthMax {
		return subject[:lengthMax] + "…"
	}
	return subject
}

// printWarning prints the events after the spot interruption warning, with their times.
func (w *runner) printWarning(victim memcloud.Record) {
	r, _ := w.env.Cloud.Record(victim.ID)
	fmt.Fprintln(w.out)
	t := w.newTable("after the warning", "event")
	isPrinted := map[event.Type]bool{}
	after := func(at time.Time) string { return at.Sub(w.warnedAt).Round(100 * time.Millisecond).String() }
	for _, h := range w.handled {
		kind := event.Type(h.line.LogFields.Type)
		if h.at.Before(w.warnedAt) || h.line.Disposition.Kind != "" || isPrinted[kind] {
			continue
		}
		isPrinted[kind] = true
		switch kind {
		case event.NodeNoticedType:
			t.AppendRow(table.Row{after(h.at), "the NodeClaim is deleted with a termination deadline: the drain begins"})
		case event.LaunchSettledType:
			t.AppendRow(table.Row{after(h.at), "the replacement is launched"})
		}
	}
	t.AppendRow(table.Row{after(r.Ended), "the instance is terminated (AWS would have reclaimed it after 120 s)"})
	t.AppendRow(table.Row{after(w.env.Now()), fmt.Sprintf("all %d pods are running and the old node is deleted", replicas)})
	t.Render()
}

// printSummary prints the duration, the number of instances and the total cost.
func (w *runner) printSummary() {
	launched := len(w.env.Cloud.Records())
	fmt.Fprintf(w.out, "\n✓ 0 → %d → 0 pods in %s of simulated time: %d instances launched, 0 left; total cost $%.4f\n",
		replicas, w.env.Now().Sub(w.env.Start).Round(time.Second), launched, w.env.Cloud.Dollars())
	fmt.Fprintf(w.out, "  %d messages were handled by the real services; Kubernetes, EC2, SQS and EventBridge were simulated.\n", len(w.handled))
}

func (w *runner) newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w.out)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(columns)
	return t
}
