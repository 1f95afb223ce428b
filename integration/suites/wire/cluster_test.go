package wire

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/joist-autoscaler/joist/integration/environment/controlplane"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/clustertest"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// TestCluster tests kubecluster against a real API server with the real controllers and
// upstream's definitions of Karpenter's kinds: they accept what Joist's types write.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{CRDs: definitions(t), NoKwok: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	client, err := kubecluster.New(cp.Config, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(cp.Config)
	t.Run("port", func(t *testing.T) { testConformance(t, client, admin) })
	t.Run("changes", func(t *testing.T) { testChanges(t, client) })
	t.Run("rights", func(t *testing.T) { testMissingPermissions(t, cp) })
}

func testConformance(t *testing.T, client *kubecluster.Client, admin kubernetes.Interface) {
	var opened atomic.Int64
	clustertest.Run(t, func(t *testing.T) clustertest.Subject {
		return clustertest.Subject{
			Client:    client,
			Namespace: namespace(t, admin, fmt.Sprintf("suite-%d", opened.Add(1))),
			NewCache:  func(t *testing.T, trim cluster.Trims) cluster.Feed { return watching(t, client, trim) },
			Wait:      pause,
			Features:  clustertest.Features{Custom: true, Budgets: true},
		}
	}, map[string]func() cluster.Trims{
		"the watcher": func() cluster.Trims { return watcher.Trims(false) }, "the watcher with deletion costs": func() cluster.Trims { return watcher.Trims(true) },
		"lifecycle": lifecycle.Trims,
	})
}

// testChanges waits only for the cache's notifications.
func testChanges(t *testing.T, client *kubecluster.Client) {
	cache := watching(t, client, nil)
	until := func(what string, holds func() bool) {
		t.Helper()
		for !holds() {
			select {
			case <-cache.Changed():
			case <-time.After(20 * time.Second):
				t.Fatalf("the cache reported no further change before: %s", what)
			}
		}
	}
	until("the cache is synced", cache.Synced)
	key := cluster.Key{Namespace: "default", Name: "changes"}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if _, err := client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	until("the created object is in the cache", func() bool { _, ok := cache.Get(cluster.ConfigMaps, key); return ok })
	if err := client.Delete(t.Context(), cluster.ConfigMaps, key, ""); err != nil {
		t.Fatal(err)
	}
	until("the deleted object is removed from the cache", func() bool { _, ok := cache.Get(cluster.ConfigMaps, key); return !ok })
}

// testMissingPermissions makes calls as a user without permissions.
func testMissingPermissions(t *testing.T, cp *controlplane.ControlPlane) {
	path, err := cp.KubeconfigAs("system:serviceaccount:joist:nobody")
	if err != nil {
		t.Fatal(err)
	}
	config, err := kubecluster.Config(path, "joist-test/v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubecluster.New(config, "joist-test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.List(t.Context(), cluster.NodeClaims, "")
	denied(t, err, `"list"`, `"nodeclaims"`, `"karpenter.sh"`)
	denied(t, client.Evict(t.Context(), cluster.Key{Namespace: "default", Name: "p"}, ""), `"create"`, `"pods/eviction"`)

	cache := runCache(t, client, kubecluster.CacheOptions{Kinds: []cluster.Kind{cluster.Nodes}})
	for range 1000 {
		if cache.Problem() != nil {
			break
		}
		pause()
	}
	// The error names one of the two missing verbs: the one that was tried last.
	denied(t, cache.Problem(), "grant the verb", `"nodes"`)
	if cache.Synced() {
		t.Error("a cache without the watch permission is synced")
	}
}

func denied(t *testing.T, err error, names ...string) {
	t.Helper()
	if !fault.Is(err, fault.Denied) {
		t.Fatalf("got error kind %q, want denied: %v", fault.KindOf(err), err)
	}
	for _, name := range names {
		if !strings.Contains(fault.FindHint(err), name) {
			t.Errorf("the hint %q does not contain %s", fault.FindHint(err), name)
		}
	}
}

// pause gives the servers a moment. The suite polls, so the duration does not matter.
func pause() { <-time.After(20 * time.Millisecond) }

// definitions writes upstream's definitions into a folder.
func definitions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"nodepools.yaml": awsapis.NodePoolCRD, "nodeclaims.yaml": awsapis.NodeClaimCRD, "ec2nodeclasses.yaml": awsapis.EC2NodeClassCRD,
		"nodeoverlays.yaml": awsapis.NodeOverlayCRD, "capacitybuffers.yaml": karpapis.CapacityBufferCRD,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// namespace creates a namespace and waits for its service account, without which pods
// cannot be created.
func namespace(t *testing.T, admin kubernetes.Interface, name string) string {
	t.Helper()
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err = admin.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{}); err == nil {
			return name
		}
		pause()
	}
	t.Fatalf("the namespace has no service account: %v", err)
	return ""
}

// watching opens a cache that trims objects with the functions and runs until the test
// ends, without a problem.
func watching(t *testing.T, client *kubecluster.Client, trim cluster.Trims) *kubecluster.Cache {
	t.Helper()
	var cache *kubecluster.Cache
	t.Cleanup(func() {
		if cache != nil && cache.Problem() != nil {
			t.Error(cache.Problem())
		}
	})
	cache = runCache(t, client, kubecluster.CacheOptions{Trim: trim})
	return cache
}

// runCache opens a cache that runs until the test ends.
func runCache(t *testing.T, client *kubecluster.Client, options kubecluster.CacheOptions) *kubecluster.Cache {
	t.Helper()
	cache, err := client.NewCache(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cache.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return cache
}
