package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joist-autoscaler/joist/integration/controlplane"
	"github.com/joist-autoscaler/joist/integration/fakeaws"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/kubecluster"
	"github.com/joist-autoscaler/joist/shared/memcloud"
	"github.com/joist-autoscaler/joist/shared/memqueue"
)

const (
	region      = "ap-northeast-2"
	clusterName = "seoul"
	namespace   = "joist"
)

// world is one control plane, one AWS and one Joist.
type world struct {
	*testing.T
	ctx   context.Context
	began time.Time

	plane *controlplane.ControlPlane
	kube  kubernetes.Interface
	cache *kubecluster.Cache
	id    event.Cluster

	cloud     *memcloud.Cloud
	aws       memcloud.World
	catalogue catalog.Catalogue
	broker    *memqueue.Broker
	server    *fakeaws.Server

	processes, functions []*process
	// dead are those that were killed and have successors.
	dead []*process
	// trouble takes what goes wrong beside the scenario.
	trouble chan error
	// beside counts what runs beside the scenario.
	beside sync.WaitGroup
	story  story
}

// newWorld starts everything but Joist.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, began: time.Now(), trouble: make(chan error, 100), story: story{said: map[string]string{}, claims: map[string]bool{}}}
	t.Cleanup(func() { fmt.Fprintf(t.Output(), "\n%s\n%s\n", t.Name(), w.story.text.String()) })
	w.startPlane()
	w.startAWS()
	// Whatever runs beside the scenario ends before what it talks to.
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		w.beside.Wait()
	})
	w.beside.Go(func() { w.cache.Run(w.ctx) })
	w.beside.Go(func() { w.every(20*time.Millisecond, w.machines()) })
	w.beside.Go(func() { w.every(tickEvery, w.tick) })
	return w
}

func (w *world) startPlane() {
	w.Helper()
	plane, err := controlplane.Start(w.Context(), controlplane.Options{CRDs: root + "/deploy/crds"})
	w.check(err)
	w.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			w.Error(err)
		}
	})
	w.plane = plane
	w.kube, err = kubernetes.NewForConfig(plane.Config)
	w.check(err)
	client, err := kubecluster.New(plane.Config, "e2e")
	w.check(err)
	w.cache, err = client.NewCache(kubecluster.CacheOptions{Kinds: []cluster.Kind{
		cluster.Pods, cluster.Nodes, cluster.NodeClaims, cluster.NodePools, cluster.NodeClasses,
	}})
	w.check(err)
	system, err := w.kube.CoreV1().Namespaces().Get(w.Context(), "kube-system", metav1.GetOptions{})
	w.check(err)
	w.id = event.Cluster{Name: clusterName, UID: string(system.UID)}
	_, err = w.kube.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	w.check(err)
	w.say("a control plane of five processes is ready")
}

// every calls f at once and then at each interval, until the world ends.
func (w *world) every(interval time.Duration, f func() error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := f(); err != nil && w.ctx.Err() == nil {
			select {
			case w.trouble <- err:
			default: // the first hundred are enough
			}
		}
		select {
		case <-w.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// healthy says what is wrong beside the scenario.
func (w *world) healthy() error {
	for _, p := range append(append([]*process{}, w.processes...), w.functions...) {
		if err := p.ended(); err != nil {
			return err
		}
	}
	for _, f := range w.functions {
		if text := w.server.Lambda.InitError(f.name); text != "" {
			return fmt.Errorf("%s did not start: %s\n%s", f.name, text, f.tail())
		}
	}
	select {
	case err := <-w.trouble:
		return err
	case <-w.plane.Died():
		return w.plane.Err()
	default:
		return nil
	}
}

// wait looks on until the condition holds, and gives up after a limit.
func (w *world) wait(limit time.Duration, what string, holds func() bool) {
	w.Helper()
	deadline := time.Now().Add(limit)
	for {
		w.look()
		if holds() {
			return
		}
		if err := w.healthy(); err != nil {
			w.Fatalf("while waiting for %s: %v", what, err)
		}
		if time.Now().After(deadline) {
			w.Fatalf("waited %s for %s, in vain\n%s", limit, what, w.tails())
		}
		select {
		case <-w.cache.Changed():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *world) tails() string {
	var all []string
	for _, p := range append(append([]*process{}, w.processes...), w.functions...) {
		all = append(all, p.tail())
	}
	return strings.Join(all, "\n")
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
