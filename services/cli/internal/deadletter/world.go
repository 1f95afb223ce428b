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

// ClusterState is what decides about a message beside its own bytes: what its receiver would
// read in Kubernetes, or what would be read of what it does.
type ClusterState struct {
	// UID is that of the cluster that was asked, kube-system's. A letter of another is not
	// judged: a kubeconfig's context is easily that of another cluster.
	UID string
	// Outbox is the fence that plans pass; nil where there is none.
	Outbox *outbox.Held
	// Intents are those that some NodeClaim carries.
	Intents map[string]bool
}

// ReadClusterState reads a cluster whose Joist is in the namespace.
func ReadClusterState(ctx context.Context, read kube.Reader, namespace string) (ClusterState, error) {
	var system corev1.Namespace
	var fence corev1.ConfigMap
	var claims struct{ Items []karpenter.NodeClaim }
	if _, err := kube.Get(ctx, read, "/api/v1/namespaces/kube-system", &system); err != nil {
		return ClusterState{}, err
	}
	there, err := kube.Get(ctx, read, "/api/v1/namespaces/"+namespace+"/configmaps/"+outbox.Name, &fence)
	if err != nil {
		return ClusterState{}, err
	}
	if _, err := kube.Get(ctx, read, "/apis/karpenter.sh/v1/nodeclaims", &claims); err != nil {
		return ClusterState{}, err
	}
	w := ClusterState{UID: string(system.UID), Intents: map[string]bool{}}
	if there {
		held, err := outbox.Parse(&fence)
		if err != nil {
			return ClusterState{}, err
		}
		w.Outbox = &held
	}
	for i := range claims.Items {
		w.Intents[claims.Items[i].Annotations[launchspec.IntentTag]] = true
	}
	return w, nil
}

// isFenced reports whether the world has a say in what becomes of a type.
func isFenced(t event.Type) bool { return t == event.PlanMadeType || t == event.LaunchRequestedType }

// applyFence asks the world about a message that its service would begin to act on.
func (r Reader) applyFence(p Prediction, m queue.Message) Prediction {
	e, err := event.Decode(m.Body)
	if p.Verdict != Handle || r.World == nil || err != nil || !isFenced(e.Type) {
		return p
	}
	w, err := r.World()
	switch {
	case err != nil:
		p.Why = joinNotes(p.Why, "not checked against Kubernetes: "+errorText(err))
		return p
	case e.ClusterUID == "" || w.UID != e.ClusterUID:
		p.Why = joinNotes(p.Why, "not checked against Kubernetes: the kubeconfig context may be of another cluster")
		return p
	}
	return w.predictFenced(e, p)
}

// predictFenced decides as lifecycle would about a plan, by the very fence; and about a launch by
// what lifecycle makes of it: the launcher, which cannot see Kubernetes, would launch.
func (w ClusterState) predictFenced(e event.Envelope, p Prediction) Prediction {
	switch e.Type {
	case event.PlanMadeType:
		plan, err := event.As[event.PlanMade](e)
		if err != nil || w.Outbox == nil {
			return p
		}
		if err := w.Outbox.Fits(plan); host.DecideDisposition(err, queue.Message{}).Action == host.Delete && err != nil {
			return Prediction{Noop, errorText(err)}
		}
		return Prediction{Handle, "the outbox waits for it"}
	case event.LaunchRequestedType:
		launch, err := event.As[event.LaunchRequested](e)
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
