package deadletter

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// ClusterState is the state in Kubernetes that predictions depend on.
type ClusterState struct {
	// UID is the UID of the namespace kube-system. Messages of another cluster are not
	// checked, because a kubeconfig context may be of another cluster.
	UID string
	// Outbox is the state of the outbox, which rejects superseded plans; nil if it does not
	// exist.
	Outbox *outbox.Stored
	// Intents are the intents in the annotations of NodeClaims.
	Intents map[string]bool
}

// ReadClusterState reads the state of a cluster with Joist in the given namespace.
func ReadClusterState(ctx context.Context, read kube.Reader, namespace string) (ClusterState, error) {
	var system corev1.Namespace
	var fence corev1.ConfigMap
	var claims struct{ Items []karpenter.NodeClaim }
	if _, err := kube.Get(ctx, read, "/api/v1/namespaces/kube-system", &system); err != nil {
		return ClusterState{}, err
	}
	hasOutbox, err := kube.Get(ctx, read, "/api/v1/namespaces/"+namespace+"/configmaps/"+outbox.Name, &fence)
	if err != nil {
		return ClusterState{}, err
	}
	if _, err := kube.Get(ctx, read, "/apis/karpenter.sh/v1/nodeclaims", &claims); err != nil {
		return ClusterState{}, err
	}
	w := ClusterState{UID: string(system.UID), Intents: map[string]bool{}}
	if hasOutbox {
		state, err := outbox.Parse(&fence)
		if err != nil {
			return ClusterState{}, err
		}
		w.Outbox = &state
	}
	for i := range claims.Items {
		w.Intents[claims.Items[i].Annotations[launchspec.IntentTag]] = true
	}
	return w, nil
}

// isFenced reports whether predictions for a type depend on the cluster state.
func isFenced(t event.Type) bool { return t == event.PlanMadeType || t == event.LaunchRequestedType }

// applyFence checks a message that the service would handle against the cluster state.
func (r Reader) applyFence(p Prediction, m queue.Message) Prediction {
	e, err := event.Decode(m.Body)
	if p.Disposition != Handle || r.ReadCluster == nil || err != nil || !isFenced(e.Type) {
		return p
	}
	w, err := r.ReadCluster()
	switch {
	case err != nil:
		p.Reason = joinNotes(p.Reason, "not checked against Kubernetes: "+errorText(err))
		return p
	case e.ClusterUID == "" || w.UID != e.ClusterUID:
		p.Reason = joinNotes(p.Reason, "not checked against Kubernetes: the kubeconfig context may be of another cluster")
		return p
	}
	return w.predictFenced(e, p)
}

// predictFenced predicts for a plan with the outbox's own check. For a launch request it
// checks whether lifecycle has a NodeClaim for the instances, because the launcher does not
// read Kubernetes.
func (w ClusterState) predictFenced(e event.Envelope, p Prediction) Prediction {
	switch e.Type {
	case event.PlanMadeType:
		plan, err := event.DecodeBody[event.PlanMade](e)
		if err != nil || w.Outbox == nil {
			return p
		}
		if err := w.Outbox.CheckPlan(plan); host.DecideDisposition(err, queue.Message{}).Action == host.Delete && err != nil {
			return Prediction{Noop, errorText(err)}
		}
		return Prediction{Handle, "the outbox waits for it"}
	case event.LaunchRequestedType:
		launch, err := event.DecodeBody[event.LaunchRequested](e)
		if err != nil || w.Intents[launch.Intent] {
			return p
		}
		return Prediction{Stale, "no NodeClaim has the intent " + launch.Intent + ": its instances would be terminated again"}
	}
	return p
}

func joinNotes(texts ...string) string {
	out := ""
	for _, text := range texts {
		if out != "" && text != "" {
			out += "; "
		}
		out += text
	}
	return out
}
