package facts

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/services/cli/internal/live"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// apiGroups are the API groups of the kinds that Joist reads.
var apiGroups = []string{"karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io"}

// readCluster starts the reads of Kubernetes.
func (g *collector) readCluster(ctx context.Context) {
	seek := func(what, right string, look func(context.Context) error) {
		g.calls.Go(func() {
			if err := look(ctx); err != nil {
				g.recordSkipped(what, err, right)
			}
		})
	}
	// The first read shows whether the API server answers; otherwise every read would fail with the
	// same error.
	var server apiversion.Info
	first, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	if _, err := kube.Get(first, g.Kube, "/version", &server); err != nil && !fault.Is(err, fault.Denied) {
		g.recordSkipped(WholeCluster, err, "")
		return
	}
	g.setFact(func(f *doctor.Facts) { f.Kubernetes = server.GitVersion })
	seek("Deployments", "the right in Kubernetes to list deployments.apps in all namespaces", g.readDeployments)
	seek("Karpenter's Lease", "the right in Kubernetes to list leases.coordination.k8s.io in all namespaces", g.readLease)
	seek("the CRDs", "the right in Kubernetes to get /apis (the role system:discovery)", g.readResources)
	seek("EC2NodeClasses", "the right in Kubernetes to list ec2nodeclasses.karpenter.k8s.aws", g.readNodeClasses)
	seek("the ConfigMap aws-auth", "the right in Kubernetes to get configmaps in kube-system", g.readAuthMap)
}

// selectorEscapes escapes a label selector in a path of the API server.
var selectorEscapes = strings.NewReplacer(" ", "%20", "=", "%3D")

// readDeployments reads the Deployments of Joist and of Karpenter.
func (g *collector) readDeployments(ctx context.Context) error {
	list := []doctor.Deployment{}
	seen := map[string]bool{}
	for _, selector := range append([]string{live.JoistSelector}, live.KarpenterSelectors...) {
		var found appsv1.DeploymentList
		if _, err := kube.Get(ctx, g.Kube, "/apis/apps/v1/deployments?labelSelector="+selectorEscapes.Replace(selector), &found); err != nil {
			return err
		}
		for i := range found.Items {
			d := &found.Items[i]
			if key := d.Namespace + "/" + d.Name; !seen[key] && (live.RunsJoist(d) || live.RunsKarpenter(d)) {
				seen[key] = true
				list = append(list, g.convertDeployment(ctx, d))
			}
		}
	}
	g.setFact(func(f *doctor.Facts) { f.Deployments = list })
	return nil
}

func (g *collector) convertDeployment(ctx context.Context, d *appsv1.Deployment) doctor.Deployment {
	out := doctor.Deployment{Namespace: d.Namespace, Name: d.Name, Component: d.Labels[live.ComponentLabel], Karpenter: live.RunsKarpenter(d), Replicas: 1, Environ: map[string]string{}}
	if d.Spec.Replicas != nil {
		out.Replicas = int(*d.Spec.Replicas)
	}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		out.Images = append(out.Images, c.Image)
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				out.Environ[e.Name] = e.Value
			}
		}
	}
	if out.Karpenter {
		for i := range d.Spec.Template.Spec.Containers {
			addFlags(&d.Spec.Template.Spec.Containers[i], out.Environ)
		}
	}
	if name := d.Spec.Template.Spec.ServiceAccountName; !out.Karpenter && name != "" {
		g.calls.Go(func() {
			g.readServiceAccount(ctx, doctor.Account{Namespace: d.Namespace, Name: name, Service: out.Component})
		})
	}
	return out
}

// addFlags adds the flags of a container of Karpenter as the variables that they replace: Karpenter reads
// the flag --cluster-name, and else the variable CLUSTER_NAME (Karpenter: pkg/operator/options/options.go).
func addFlags(c *corev1.Container, environ map[string]string) {
	var words []string
	for _, arg := range slices.Concat(c.Command, c.Args) {
		if strings.HasPrefix(arg, "-") {
			words = append(words, arg)
		} else {
			words = append(words, strings.Fields(arg)...) // A shell's command is one argument.
		}
	}
	for i, word := range words {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case hasValue:
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			value = words[i+1]
		default:
			value = "true"
		}
		// The kubelet replaces $(NAME) by the variable.
		if variable, isReference := strings.CutPrefix(strings.TrimSuffix(value, ")"), "$("); isReference {
			value = environ[variable]
		}
		environ[strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
	}
}

// readLease reads Karpenter's Lease in any namespace. If there are several, it uses the one that
// was renewed last.
func (g *collector) readLease(ctx context.Context) error {
	var found coordinationv1.LeaseList
	if _, err := kube.Get(ctx, g.Kube, "/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D"+lease.KarpenterName, &found); err != nil {
		return err
	}
	var out *doctor.Lease
	for i := range found.Items {
		l := &found.Items[i]
		if l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
			continue
		}
		if out == nil || l.Spec.RenewTime.After(out.Renewed) {
			out = &doctor.Lease{Namespace: l.Namespace, Holder: *l.Spec.HolderIdentity, Renewed: l.Spec.RenewTime.Time}
		}
	}
	g.setFact(func(f *doctor.Facts) { f.Lease = out })
	return nil
}

// readResources reads the kinds that the API server serves, in all versions.
func (g *collector) readResources(ctx context.Context) error {
	list := []string{}
	for _, name := range apiGroups {
		var group metav1.APIGroup
		if _, err := kube.Get(ctx, g.Kube, "/apis/"+name, &group); err != nil {
			return err
		}
		for _, version := range group.Versions {
			var served metav1.APIResourceList
			if _, err := kube.Get(ctx, g.Kube, "/apis/"+version.GroupVersion, &served); err != nil {
				return err
			}
			for i := range served.APIResources {
				if r := &served.APIResources[i]; !strings.Contains(r.Name, "/") {
					list = append(list, version.GroupVersion+"/"+r.Name)
				}
			}
		}
	}
	g.setFact(func(f *doctor.Facts) { f.Resources = list })
	return nil
}

// readAuthMap reads the ConfigMap aws-auth.
func (g *collector) readAuthMap(ctx context.Context) error {
	var found corev1.ConfigMap
	if _, err := kube.Get(ctx, g.Kube, "/api/v1/namespaces/kube-system/configmaps/aws-auth", &found); err != nil {
		return err
	}
	roles := found.Data["mapRoles"]
	g.setFact(func(f *doctor.Facts) {
		if f.Access == nil {
			f.Access = &doctor.Access{}
		}
		f.Access.AuthMap = &roles
	})
	return nil
}
