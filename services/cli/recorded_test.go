package cli_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// recordedManifests are a NodePool that consolidates soon, Deployments of large and of small pods, and one
// whose pods no NodePool accepts.
func recordedManifests(t *testing.T, env *embedded.EmbeddedCluster) []cluster.Object {
	t.Helper()
	var text []string
	for _, name := range []string{"nodepool.yaml", "inflate.yaml"} {
		data, err := os.ReadFile("internal/demo/manifests/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(data))
	}
	pools := strings.NewReplacer("consolidateAfter: 10m", "consolidateAfter: 30s\n    budgets: [{nodes: 100%}]", "            - t4g\n", "            - t4g\n            - m7g\n", "            - spot\n", "", "cpu: 20", "cpu: 60", "80Gi", "400Gi",
		`            - "4"`+"\n", `            - "4"`+"\n"+`            - "8"`+"\n", `            - "16384"`+"\n", `            - "16384"`+"\n"+`            - "32768"`+"\n").Replace(text[0])
	large := strings.ReplaceAll(text[1], "cpu: 1", "cpu: 3")
	small := strings.NewReplacer("name: inflate", "name: small", "cpu: 1", "cpu: 500m").Replace(text[1])
	picky := strings.NewReplacer("name: inflate", "name: picky", "replicas: 0", "replicas: 2", "terminationGracePeriodSeconds: 0", "nodeSelector: {kubernetes.io/arch: amd64}\n      terminationGracePeriodSeconds: 0").Replace(text[1])
	documents, err := manifest.Read("recorded.yaml", []byte(strings.Join([]string{pools, large, small, picky}, "\n---\n")), manifest.Expand(map[string]string{"EKS_CLUSTER_NAME": env.Cluster, "KARPENTER_NODE_ROLE": env.AWS.Role}))
	if err != nil {
		t.Fatal(err)
	}
	objects := manifest.Objects(documents)
	for _, o := range objects {
		if kind, _ := cluster.KindOf(o); kind.Namespaced && o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
	}
	return objects
}

// recordRun runs all services: large and small pods come and share nodes, some of the large ones go, and
// consolidation replaces nodes that are larger than the small ones need.
func recordRun(t *testing.T, options embedded.Options) *embedded.EmbeddedCluster {
	t.Helper()
	env := recordLaunches(t, options)
	scaleDeployment(env, "inflate", 2)
	runFor(t, env, 6*time.Minute)
	return env
}

// recordLaunches runs all services until large and small pods share nodes.
func recordLaunches(t *testing.T, options embedded.Options) *embedded.EmbeddedCluster {
	t.Helper()
	options.Seed, options.Cluster, options.Families, options.CacheDelay = 3, "shop", []string{"t4g", "m7g", "m7i"}, 30*time.Millisecond
	env, err := embedded.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Apply(t.Context(), recordedManifests(t, env)...); err != nil {
		t.Fatal(err)
	}
	runFor(t, env, time.Minute)
	scaleDeployment(env, "inflate", 4)
	scaleDeployment(env, "small", 3)
	runFor(t, env, 2*time.Minute)
	return env
}

func runFor(t *testing.T, env *embedded.EmbeddedCluster, limit time.Duration) {
	t.Helper()
	if _, err := env.Run(t.Context(), limit, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
}

func scaleDeployment(env *embedded.EmbeddedCluster, name string, replicas int32) {
	env.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: name}, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = &replicas
	})
}

// joistOnRecords runs a command on the documents of a run, at its end.
func joistOnRecords(t *testing.T, env *embedded.EmbeddedCluster, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Env{
		Args: append(args, "--store", "s3://joist-shop/shop"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: env.Now,
		Store: func(context.Context, string, string) (blob.Store, error) { return env.Blobs, nil },
		After: hideProgress,
	})
	return out.String(), errs.String(), code
}
