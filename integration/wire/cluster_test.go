package wire

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/controlplane"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/clustertest"
	"github.com/joist-autoscaler/joist/shared/kubecluster"
)

// TestCluster proves kubecluster before a real API server, with the real
// controllers and upstream's own definitions of Karpenter's kinds: what our
// types write, those accept.
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
	var opened atomic.Int64
	clustertest.Run(t, func(t *testing.T) clustertest.Subject {
		return clustertest.Subject{
			Client:    client,
			Namespace: namespace(t, admin, fmt.Sprintf("suite-%d", opened.Add(1))),
			NewCache:  func(t *testing.T) cluster.Cache { return watching(t, client) },
			Wait:      pause,
			Features:  clustertest.Features{Custom: true, Budgets: true},
		}
	})
}

// pause gives the servers a moment. The suite asks again, so that its length
// decides nothing.
func pause() { <-time.After(20 * time.Millisecond) }

// definitions writes upstream's definitions into a folder.
func definitions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"nodepools.yaml": awsapis.NodePoolCRD, "nodeclaims.yaml": awsapis.NodeClaimCRD, "ec2nodeclasses.yaml": awsapis.EC2NodeClassCRD,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// namespace makes a namespace in which pods can be created, which is once it
// has its service account.
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

// watching opens a cache that runs until the test ends.
func watching(t *testing.T, client *kubecluster.Client) cluster.Cache {
	t.Helper()
	cache, err := client.NewCache(kubecluster.CacheOptions{})
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
		if err := cache.Problem(); err != nil {
			t.Error(err)
		}
	})
	return cache
}
