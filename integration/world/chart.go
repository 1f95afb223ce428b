package world

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/charts"
	"github.com/joist-autoscaler/joist/shared/settings"
)

// chart is what a person says to helm, and no more: everything else follows from
// it. There are no kubelets to run the pods, so that none are asked for; their
// processes are started beside, with what the pods would have.
func chart(more ...string) charts.Release {
	return charts.Release{Name: "joist", Namespace: Namespace, Chart: charts.Joist, Set: append([]string{
		"settings.clusterName=" + ClusterName, "settings.region=" + Region, "settings.accountID=123456789012",
		"controller.image.repository=registry.example.com/joist", "replicas=0",
	}, more...)}
}

// Install gives Joist its service accounts, its rights and its Deployments, as helm
// does. It takes T and Plane alone.
func (w *World) Install(more ...string) {
	w.Helper()
	_, err := charts.Install(w.Context(), w.Plane.Kubeconfig, chart(more...))
	w.Check(err)
}

// podEnviron is the environment that the kubelet would give to a service's container,
// with the rights of the pod's service account: what the chart forgets is not there.
func (w *World) podEnviron(service string) []string {
	w.Helper()
	kube, err := kubernetes.NewForConfig(w.Plane.Config)
	w.Check(err)
	d, err := kube.AppsV1().Deployments(Namespace).Get(w.Context(), "joist-"+service, metav1.GetOptions{})
	w.Check(err)
	user := "system:serviceaccount:" + d.Namespace + ":" + d.Spec.Template.Spec.ServiceAccountName
	if user != Account(service) {
		w.Errorf("the pods of %s are %s to Kubernetes, want %s", service, user, Account(service))
	}
	kubeconfig, err := w.Plane.KubeconfigAs(user)
	w.Check(err)
	environ := []string{settings.Kubeconfig + "=" + kubeconfig}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		environ = append(environ, v.Name+"="+w.value(d, v))
	}
	return environ
}

func (w *World) value(d *appsv1.Deployment, v corev1.EnvVar) string {
	w.Helper()
	if v.ValueFrom == nil {
		return v.Value
	}
	switch path := v.ValueFrom.FieldRef.FieldPath; path {
	case "metadata.name":
		return d.Name + "-0"
	case "metadata.namespace":
		return d.Namespace
	default:
		w.Fatalf("%s of joist's pods is %s, which nobody fills in here", v.Name, strings.TrimSpace(path))
		return ""
	}
}
