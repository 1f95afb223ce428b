package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// The controllers.
const (
	Joist     = "Joist"
	Karpenter = "Karpenter"
)

// Controller is the controller that manages the cluster's nodes.
type Controller struct {
	// Name is Joist or Karpenter, or empty if neither was found.
	Name string
	// Namespace is that of its Deployment.
	Namespace string
	// Settings are those of its environment, or the defaults.
	Settings settings.Settings
}

// Labels that the charts of Joist and of Karpenter write.
const (
	// ComponentLabel has the service that a Deployment of Joist runs.
	ComponentLabel = "app.kubernetes.io/component"
	nameLabel      = "app.kubernetes.io/name"
	karpenterName  = "karpenter"
)

// The label selectors of the Deployments of Joist, and of the Deployments that may run Karpenter. The value
// nameOverride of Karpenter's chart changes the label of the first KarpenterSelectors, and the name of the
// Helm release is in the second.
var (
	JoistSelector      = ComponentLabel + " in (" + strings.Join(topology.ClusterServices, ",") + ")"
	KarpenterSelectors = []string{nameLabel + "=" + karpenterName, "app.kubernetes.io/instance=" + karpenterName}
)

// RunsJoist reports whether a Deployment is one of Joist's. It may have the name karpenter, so that
// Karpenter's commands work.
func RunsJoist(d *appsv1.Deployment) bool {
	return slices.Contains(topology.ClusterServices, d.Labels[ComponentLabel])
}

// RunsKarpenter reports whether a Deployment runs Karpenter's controller: it has Karpenter's label or an
// image with karpenter in its name, in any registry, and is not one of Joist's.
func RunsKarpenter(d *appsv1.Deployment) bool {
	return !RunsJoist(d) && (d.Labels[nameLabel] == karpenterName ||
		slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return strings.Contains(c.Image, karpenterName) }))
}

// findController finds the watcher's Deployment, or else Karpenter's, and reads its settings.
func (r *reader) findController(ctx context.Context) (Controller, []string, []Unread, error) {
	var found []Controller
	var assumptions []string
	for _, labels := range append([]string{JoistSelector}, KarpenterSelectors...) {
		objects, err := r.from.ListPages(ctx, cluster.Deployments, r.options.Namespace, labels, func([]cluster.Object, int) {})
		if isUnreadable(err) {
			unread := newUnread(cluster.Deployments, err)
			unread.Consequence = "the settings and feature gates of Joist or Karpenter are unknown, and the defaults are assumed"
			return Controller{Settings: defaultSettings()}, nil, []Unread{unread}, nil
		}
		if err != nil {
			return Controller{}, nil, nil, describeFailure(err)
		}
		for _, d := range cluster.CastAll[*appsv1.Deployment](objects) {
			one, err := newController(d)
			if err != nil {
				assumptions = append(assumptions, fmt.Sprintf("the default settings, because those of %s cannot be read: %s", cluster.KeyOf(d), oneLine(err)))
			}
			if one.Name != "" {
				found = append(found, one)
			}
		}
	}
	if len(found) == 0 {
		return Controller{Settings: defaultSettings()}, append(assumptions, "the default settings and feature gates, because neither Joist nor Karpenter was found"), nil, nil
	}
	// A controller without replicas does not manage nodes.
	slices.SortStableFunc(found, func(a, b Controller) int { return cmp.Compare(b.rank(), a.rank()) })
	return found[0], assumptions, nil, nil
}

// rank orders controllers: Joist before Karpenter.
func (c Controller) rank() int {
	if c.Name == Joist {
		return 1
	}
	return 0
}

// newController returns the controller of a Deployment; without a name if it is another program or has
// no replicas.
func newController(d *appsv1.Deployment) (Controller, error) {
	out := Controller{Namespace: d.Namespace, Settings: defaultSettings()}
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return out, nil
	}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		switch lookup := lookupEnv(c); {
		case isSet(lookup, settings.PlannerURL):
			out.Name = Joist
		case RunsKarpenter(d) && isSet(lookup, "CLUSTER_NAME"):
			out.Name = Karpenter
		default:
			continue
		}
		read, err := settings.Read(lookupEnv(c))
		if err != nil {
			return out, err
		}
		out.Settings = read
		return out, nil
	}
	return out, nil
}

// lookupEnv returns a lookup of a container's variables. Values from other objects are not read.
func lookupEnv(c *corev1.Container) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name && e.ValueFrom == nil })
		if at < 0 {
			return "", false
		}
		return c.Env[at].Value, true
	}
}

func isSet(lookup func(string) (string, bool), name string) bool {
	value, _ := lookup(name)
	return value != ""
}

// defaultSettings returns the settings without any variable.
func defaultSettings() settings.Settings {
	out, err := settings.Read(func(string) (string, bool) { return "", false })
	if err != nil {
		return settings.Settings{} // Unreachable: every default is valid, which a test of settings checks.
	}
	return out
}
