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

// nodes prints the nodes with what they are, hold and cost.
func (w *watch) nodes() {
	onNode := map[string]int{}
	for _, pod := range all[*corev1.Pod](w.world, cluster.Pods) {
		onNode[pod.Spec.NodeName]++
	}
	price := map[string]float64{}
	for _, r := range w.world.Cloud.Records() {
		price[karpenter.ProviderID{Zone: r.Zone, InstanceID: r.ID}.String()] = r.PricePerHour
	}
	t := w.table("node", "type", "zone", "capacity type", "$/h", "pods")
	total := 0.0
	for _, node := range all[*corev1.Node](w.world, cluster.Nodes) {
		dollars := price[node.Spec.ProviderID]
		total += dollars
		t.AppendRow(table.Row{
			node.Name, node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone],
			node.Labels[karpenter.CapacityTypeLabelKey], fmt.Sprintf("%.4f", dollars), onNode[node.Name],
		})
	}
	t.AppendFooter(table.Row{"", "", "", "", fmt.Sprintf("%.4f", total), w.running()})
	fmt.Fprintln(w.out)
	t.Render()
}

// trail prints the story of a pod of the first batch that was launched for:
// every message with the batch's correlation, as `joist trace` will for a real cluster.
func (w *watch) trail() {
	var correlation string
	for _, h := range w.heard {
		if event.Type(h.line.LogFields.Type) == event.LaunchRequestedType {
			correlation = h.line.LogFields.Correlation
			break
		}
	}
	pods := all[*corev1.Pod](w.world, cluster.Pods)
	if correlation == "" || len(pods) == 0 {
		return
	}
	fmt.Fprintf(w.out, "\nTrace of pod %s: every message with correlation ID %.12s…\n", pods[0].Name, correlation)
	t := w.table("at", "handled by", "message", "subject", "disposition")
	for _, h := range w.heard {
		if n := h.line.LogFields; n.Correlation == correlation {
			t.AppendRow(table.Row{w.clock(h.at), h.line.Service, n.Type, short(n.Subject), h.line.Disposition.Action})
		}
	}
	t.AppendRow(table.Row{w.clock(w.world.Now()), "kube-scheduler", "pod is running", pods[0].Spec.NodeName, ""})
	t.Render()
}

func short(subject string) string {
	const most = 40
	if len(subject) > most {
		return subject[:most] + "…"
	}
	return subject
}

// warning prints what the spot warning led to, and how fast.
func (w *watch) warning(victim memcloud.Record) {
	r, _ := w.world.Cloud.Record(victim.ID)
	fmt.Fprintln(w.out)
	t := w.table("after the warning", "event")
	told := map[event.Type]bool{}
	after := func(at time.Time) string { return at.Sub(w.warned).Round(100 * time.Millisecond).String() }
	for _, h := range w.heard {
		kind := event.Type(h.line.LogFields.Type)
		if h.at.Before(w.warned) || h.line.Disposition.Kind != "" || told[kind] {
			continue
		}
		told[kind] = true
		switch kind {
		case event.NodeNoticedType:
			t.AppendRow(table.Row{after(h.at), "the NodeClaim is deleted with a termination deadline: the drain begins"})
		case event.LaunchSettledType:
			t.AppendRow(table.Row{after(h.at), "the replacement is launched"})
		}
	}
	t.AppendRow(table.Row{after(r.Ended), "the instance is terminated (AWS would have reclaimed it after 120 s)"})
	t.AppendRow(table.Row{after(w.world.Now()), fmt.Sprintf("all %d pods are running and the old node is deleted", replicas)})
	t.Render()
}

// summary prints what is left and what it all cost.
func (w *watch) summary() {
	launched := len(w.world.Cloud.Records())
	fmt.Fprintf(w.out, "\n✓ 0 → %d → 0 pods in %s of simulated time: %d instances launched, 0 left; total cost $%.4f\n",
		replicas, w.world.Now().Sub(w.world.Start).Round(time.Second), launched, w.world.Cloud.Dollars())
	fmt.Fprintf(w.out, "  %d messages were handled by the real services; Kubernetes, EC2, SQS and EventBridge were simulated.\n", len(w.heard))
}

func (w *watch) table(columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w.out)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(columns)
	return t
}
