package testbed

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// images is where nobody ever pulls from.
const images = "registry.example.com/joist"

// setting is one of a command's.
var setting = regexp.MustCompile(`--set-string ['"]([^'"]+)['"]`)

// chart is the release that the deployed template's output says, word for word, and
// for a world without AWS the least that the chart asks for. There are no kubelets to run
// the pods, so that none are asked for; their processes are started beside, with
// what the pods would have.
func (w *World) chart() helm.Release {
	w.Helper()
	said := "--set-string 'settings.clusterName=" + ClusterName + "' --set-string 'settings.region=" + Region +
		"' --set-string 'settings.accountID=" + account + "' --set-string 'controller.image.repository=" + images + "'"
	if w.Server != nil {
		_, said, _ = strings.Cut(w.deployed.Outputs["HelmCommand"], "/charts/joist --namespace "+Namespace+" ")
	}
	r := helm.Release{Name: "joist", Namespace: Namespace, Chart: helm.Joist, Set: append([]string{"replicas=0"}, w.options.Values...)}
	for _, value := range setting.FindAllStringSubmatch(said, -1) {
		r.Strings = append(r.Strings, strings.ReplaceAll(value[1], "$JOIST_IMAGES", images))
	}
	if len(r.Strings) < 4 {
		w.Fatalf("the command of helm is %q", said)
	}
	return r
}

// Install gives Joist its service accounts, its rights and its Deployments, as helm
// does. It takes T and Plane alone.
func (w *World) Install() {
	w.Helper()
	notes, err := helm.Install(w.Context(), w.Plane.Kubeconfig, w.chart())
	w.Check(err)
	if strings.Contains(notes, "WARNING") {
		w.Errorf("helm warns:\n%s", notes)
	}
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
