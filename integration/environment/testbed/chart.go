package testbed

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// imageRegistry is never pulled from.
const imageRegistry = "registry.example.com/joist"

// setStringFlag matches a --set-string flag of a Helm command.
var setStringFlag = regexp.MustCompile(`--set-string ['"]([^'"]+)['"]`)

// Installation is how Joist's chart is installed. The zero value is that of the stack's HelmCommand, without pods.
type Installation struct {
	// Namespace is an existing one; Namespace if it is empty.
	Namespace string
	// Files are files of Helm values. The values of HelmCommand override them.
	Files []string
	// Pods keeps the chart's replicas, whose pods kwok runs on nodes of the test. They are only shown: the test bed starts
	// the processes of the services.
	Pods bool
}

// namespace returns the namespace of the current installation.
func (w *TestBed) namespace() string { return cmp.Or(w.installation.Namespace, Namespace) }

// chartRelease returns the release of the deployed template's output. It has no replicas, because there are no
// kubelets; the processes of the pods are started by the test bed.
func (w *TestBed) chartRelease() helm.Release {
	w.Helper()
	command := "--set-string 'settings.clusterName=" + ClusterName + "' --set-string 'settings.region=" + Region +
		"' --set-string 'settings.accountID=" + account + "' --set-string 'controller.image.repository=" + imageRegistry + "'"
	if w.Server != nil {
		_, command, _ = strings.Cut(w.deployed.Outputs["HelmCommand"], "/charts/joist --namespace "+Namespace+" ")
	}
	r := helm.Release{Name: "joist", Namespace: w.namespace(), Chart: helm.Joist, Files: w.installation.Files, Set: append([]string{"replicas=0"}, w.options.Values...)}
	if w.installation.Pods {
		r.Set = w.options.Values
	}
	for _, value := range setStringFlag.FindAllStringSubmatch(command, -1) {
		r.Strings = append(r.Strings, strings.ReplaceAll(value[1], "$JOIST_IMAGES", imageRegistry))
	}
	if len(r.Strings) < 4 {
		w.Fatalf("the HelmCommand output is %q", command)
	}
	if w.options.Charts != "" {
		r.Chart, r.Version = w.options.Charts+"/joist", w.options.ChartVersion
		r.Strings = slices.DeleteFunc(r.Strings, func(value string) bool { return strings.HasPrefix(value, "controller.image.repository=") })
	}
	return r
}

// installCRDs installs the chart of the CRDs from the registry.
func (w *TestBed) installCRDs() {
	w.Helper()
	_, err := helm.Install(w.Context(), w.Plane.Kubeconfig, helm.Release{
		Name: "joist-crd", Namespace: Namespace, Chart: w.options.Charts + "/joist-crd", Version: w.options.ChartVersion,
	})
	w.RequireNoError(err)
}

// InstallChart installs Joist's service accounts, rights and Deployments with Helm, and returns what Helm prints. It needs only
// T and Plane.
func (w *TestBed) InstallChart() string {
	w.Helper()
	notes, err := helm.Install(w.Context(), w.Plane.Kubeconfig, w.chartRelease())
	w.RequireNoError(err)
	if strings.Contains(notes, "WARNING") {
		w.Errorf("helm warns:\n%s", notes)
	}
	return notes
}

// podEnvironment returns the environment of a service's container by the chart, with the rights of its service
// account.
func (w *TestBed) podEnvironment(service string) []string {
	w.Helper()
	kube, err := kubernetes.NewForConfig(w.Plane.Config)
	w.RequireNoError(err)
	d, err := kube.AppsV1().Deployments(w.namespace()).Get(w.Context(), "joist-"+service, metav1.GetOptions{})
	w.RequireNoError(err)
	user := "system:serviceaccount:" + d.Namespace + ":" + d.Spec.Template.Spec.ServiceAccountName
	if want := "system:serviceaccount:" + w.namespace() + ":joist-" + service; user != want {
		w.Errorf("the pods of %s have the user %s, want %s", service, user, want)
	}
	kubeconfig := w.podKubeconfig(kube, d)
	environ := []string{settings.Kubeconfig + "=" + kubeconfig}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		environ = append(environ, v.Name+"="+w.environmentValue(d, v))
	}
	return environ
}

// podKubeconfig returns a kubeconfig with a token of the pods' service account, as a kubelet requests one.
func (w *TestBed) podKubeconfig(kube kubernetes.Interface, d *appsv1.Deployment) string {
	w.Helper()
	lifetime := int64(tokenLifetime.Seconds())
	issued, err := kube.CoreV1().ServiceAccounts(d.Namespace).CreateToken(w.Context(), d.Spec.Template.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}, metav1.CreateOptions{})
	w.RequireNoError(err)
	file := api.NewConfig()
	file.CurrentContext = "pod"
	file.Clusters["pod"] = &api.Cluster{Server: w.Plane.Config.Host, CertificateAuthorityData: w.Plane.Config.CAData}
	if proxy := w.Proxies[strings.TrimPrefix(d.Name, "joist-")]; proxy != nil {
		file.Clusters["pod"] = &api.Cluster{Server: proxy.Host, CertificateAuthorityData: proxy.CAData}
	}
	file.AuthInfos["pod"] = &api.AuthInfo{Token: issued.Status.Token}
	file.Contexts["pod"] = &api.Context{Cluster: "pod", AuthInfo: "pod"}
	path := filepath.Join(w.TempDir(), "kubeconfig")
	w.RequireNoError(clientcmd.WriteToFile(*file, path))
	return path
}

// tokenLifetime is longer than any test, because no kubelet renews the token.
const tokenLifetime = 12 * time.Hour

func (w *TestBed) environmentValue(d *appsv1.Deployment, v corev1.EnvVar) string {
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
		w.Fatalf("volume %s of Joist's pods has the source %s, which the test bed does not support", v.Name, strings.TrimSpace(path))
		return ""
	}
}

// InstallIntoCluster installs the chart and starts the services in the cluster, and returns what Helm prints. The functions
// are not started.
func (w *TestBed) InstallIntoCluster(dir string, i Installation) string {
	w.Helper()
	w.installation = i
	notes := w.InstallChart()
	for _, service := range inCluster {
		for replica := range max(1, w.options.Replicas) {
			environ := append(w.inClusterEnvironment(service), settings.Holder+"="+ReplicaName(service, replica))
			w.processes = append(w.processes, startProcess(w.T, dir, service, environ))
		}
	}
	return notes
}

// ReplicaName returns the name of a pod of a service in the cluster.
func ReplicaName(service string, replica int) string {
	return fmt.Sprintf("joist-%s-%d", service, replica)
}

// Uninstall stops the services in the cluster and uninstalls the chart. The functions go on.
func (w *TestBed) Uninstall() {
	w.Helper()
	w.StopInCluster()
	_, err := helm.Uninstall(w.Context(), w.Plane.Kubeconfig, w.chartRelease())
	w.RequireNoError(err)
}
