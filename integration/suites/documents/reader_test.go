package documents

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// manifests are those of the documents, as printed.
	manifests  = "../cli/testdata/manifests/"
	converting = testbed.Root + "/shared/manifest/"
	// profile is the instance profile of Karpenter's CloudFormation template.
	profile = "KarpenterNodeInstanceProfile-" + testbed.ClusterName
	// readyTimeout is for kubectl wait.
	readyTimeout = " --timeout=60s"
)

// reader is a person who follows a document, with joist, kubectl and Helm in a shell.
type reader struct {
	*testbed.TestBed
	// services is the folder of the services' binaries, and folder the person's own.
	services, folder string
	environ          []string
	// namespace is where the document installs the chart.
	namespace string
}

// newReader returns a person with a cluster, a node group of two nodes, and Joist's stack in the account.
func newReader(w *testbed.TestBed, services, tools string) *reader {
	w.Helper()
	program, err := helm.Tool.Build(w.Context(), testbed.Root)
	w.RequireNoError(err)
	r := &reader{TestBed: w, services: services, folder: w.TempDir()}
	w.RequireNoError(os.Symlink(program, filepath.Join(r.folder, "helm")))
	r.environ = slices.Concat(w.Server.Environ(), []string{
		"PATH=" + tools + ":" + r.folder + ":" + os.Getenv("PATH"), "HOME=" + r.folder, "TMPDIR=" + os.TempDir(), "NO_COLOR=1", "KUBECONFIG=" + w.Plane.Kubeconfig,
		"AWS_ACCESS_KEY_ID=AKIDPERSON", "AWS_REGION=" + testbed.Region, "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"CLUSTER_NAME=" + testbed.ClusterName, "EKS_CLUSTER_NAME=" + testbed.ClusterName, "KARPENTER_NODE_ROLE=" + w.AWS.Role,
		"KarpenterControllerRole=arn:aws:iam::123456789012:role/controller", "KARPENTER_IAM_ROLE_ARN=arn:aws:iam::123456789012:role/controller", "STORE=" + w.Store(),
	})
	for _, name := range []string{"first", "second"} {
		// m5.large, as of the documents' node groups.
		node := controlplane.FakeNode("group-"+name, corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1930m"), corev1.ResourceMemory: resource.MustParse("6903Mi"), corev1.ResourcePods: resource.MustParse("29"),
		})
		node.Labels["eks.amazonaws.com/nodegroup"] = "default_node_group"
		node.Labels[corev1.LabelTopologyZone] = testbed.Region + map[string]string{"first": "a", "second": "b"}[name]
		_, err := w.Kube.CoreV1().Nodes().Create(w.Context(), node, metav1.CreateOptions{})
		w.RequireNoError(err)
	}
	return r
}

// copyFile gives the person a file as the document prints it.
func (r *reader) copyFile(from, name string) {
	r.Helper()
	text, err := os.ReadFile(from)
	r.RequireNoError(err)
	r.RequireNoError(os.WriteFile(filepath.Join(r.folder, name), text, 0o600))
}

// run runs a line of a shell, and returns what it prints. It fails the test if the line does.
func (r *reader) run(line string) string {
	r.Helper()
	out, code := r.runLine(line)
	if code != 0 {
		r.Fatalf("%s\nexits with %d:\n%s", line, code, out)
	}
	return out
}

// runFails runs a line that must fail, and requires a text in its output, which the troubleshooting page must have.
func (r *reader) runFails(line, symptom string) {
	r.Helper()
	out, code := r.runLine(line)
	if code == 0 || !strings.Contains(out, symptom) {
		r.Errorf("%s\nexits with %d, want a failure with %q:\n%s", line, code, symptom, out)
	}
	r.requireSymptom(symptom)
}

// runChanges runs a command of joist that exits with 2: it found or converted something.
func (r *reader) runChanges(line string, wants ...string) {
	r.Helper()
	out, code := r.runLine(line)
	if code != 2 {
		r.Fatalf("%s\nexits with %d, want 2:\n%s", line, code, out)
	}
	r.requireTexts(line, out, wants...)
}

// runShows runs a line and requires texts in its output.
func (r *reader) runShows(line string, wants ...string) {
	r.Helper()
	r.requireTexts(line, r.run(line), wants...)
}

func (r *reader) requireTexts(line, out string, wants ...string) {
	r.Helper()
	for _, want := range wants {
		if !strings.Contains(out, want) {
			r.Errorf("%s\nprints no %q:\n%s", line, want, out)
		}
	}
}

func (r *reader) runLine(line string) (output string, code int) {
	r.Helper()
	var out bytes.Buffer
	command := exec.CommandContext(r.Context(), "bash", "-c", line)
	command.Dir, command.Env, command.Stdout, command.Stderr = r.folder, r.environ, &out, &out
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	r.Logf("$ %s\n%s", line, strings.TrimRight(out.String(), "\n"))
	if exit != nil {
		code = exit.ExitCode()
	}
	return out.String(), code
}

// requireSymptom fails the test if the troubleshooting page has not the text of an error.
func (r *reader) requireSymptom(text string) {
	r.Helper()
	if !strings.Contains(readTroubleshooting(r.T), text) {
		r.Errorf("the troubleshooting page has no %q", text)
	}
}

// install installs the chart with values.yaml, and waits for the pods.
func (r *reader) install(namespace string) {
	r.Helper()
	r.namespace = namespace
	notes := r.InstallIntoCluster(r.services, testbed.Installation{Namespace: namespace, Files: []string{filepath.Join(r.folder, "values.yaml")}, Pods: true})
	r.requireTexts("helm upgrade --install", notes, "Joist watches the cluster "+testbed.ClusterName, "from the namespace "+namespace)
}

// waitForDeployments waits until the chart's pods are shown as running.
func (r *reader) waitForDeployments() {
	r.Helper()
	for _, service := range []string{"watcher", "lifecycle"} {
		r.run("kubectl rollout status deployment/joist-" + service + " --namespace " + r.namespace + readyTimeout)
	}
	r.runShows("kubectl get pods --namespace "+r.namespace, "joist-watcher-", "joist-lifecycle-", "Running")
}

// scale scales the Deployment inflate, and waits until its pods run.
func (r *reader) scale(replicas int) {
	r.Helper()
	r.run(fmt.Sprintf("kubectl scale deployment inflate --replicas %d", replicas))
	r.WaitForPods("inflate", replicas)
}

// waitUntilEmpty waits until no node of a NodePool is left.
func (r *reader) waitUntilEmpty(limit time.Duration) {
	r.Helper()
	r.WaitUntil(limit, "the nodes, NodeClaims and instances to be removed", func() bool {
		return len(r.ManagedNodes())+len(r.Claims()) == 0 && r.AllTerminated()
	})
}

// firstNode returns a node of a NodePool, and firstPod a pod of inflate on a node of a NodePool.
func (r *reader) firstNode() *corev1.Node {
	r.Helper()
	nodes := r.ManagedNodes()
	if len(nodes) == 0 {
		r.Fatal("no NodePool has a node")
	}
	return nodes[0]
}

func (r *reader) firstPod() *corev1.Pod {
	r.Helper()
	for _, pod := range r.Pods("inflate") {
		if slices.ContainsFunc(r.ManagedNodes(), func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName }) {
			return pod
		}
	}
	r.Fatal("no pod of inflate is on a node of a NodePool")
	return nil
}

// requireLabels fails the test unless every node of a NodePool has the labels.
func (r *reader) requireLabels(want map[string]string) {
	r.Helper()
	r.firstNode()
	for _, node := range r.ManagedNodes() {
		for key, value := range want {
			if got := node.Labels[key]; got != value {
				r.Errorf("node %s: the label %s is %q, want %q", node.Name, key, got, value)
			}
		}
		if !slices.Contains(node.Finalizers, karpenter.TerminationFinalizer) {
			r.Errorf("node %s has the finalizers %v", node.Name, node.Finalizers)
		}
	}
}

// removeAll removes the pods, NodePools, node classes and the chart, and requires that nothing is left in the account.
func (r *reader) removeAll() {
	r.run("kubectl delete deployments --all")
	r.run(`kubectl annotate nodepools --all joist.sh/approve="delete 100%"`)
	r.run("kubectl delete nodepools --all --timeout=120s")
	r.run("kubectl wait --for=delete nodeclaims --all --timeout=120s")
	r.run("kubectl delete ec2nodeclasses --all --timeout=120s")
	r.waitUntilEmpty(time.Minute)
	r.Uninstall()
	templates, err := r.Cloud.Templates(r.Context(), nil)
	r.RequireNoError(err)
	if len(templates) > 0 {
		r.Errorf("%d launch templates are left", len(templates))
	}
	r.RequireNoOrphans()
}
