package lifecyclepass

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/kubecluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

const namespace = "kube-system"

var clusterIdentity = event.Cluster{Name: "specs", UID: "uid"}

// kinds are what the lifecycle service watches.
var kinds = []cluster.Kind{
	cluster.Pods, cluster.Nodes, cluster.DisruptionBudgets, cluster.VolumeAttachments, cluster.VolumeClaims,
	cluster.NodePools, cluster.NodeClaims, cluster.NodeClasses, cluster.ResourceSlices,
}

// system is the lifecycle service on the API server of the specs.
type system struct {
	client   *specClient
	cache    cluster.Stores
	service  *lifecycle.Service
	blobs    *memblob.Store
	launcher *memqueue.Queue
	maker    event.Maker
	// commands are to be executed, and failed the commands that the cloud provider refused in this pass.
	commands, failed []event.Envelope
	// terminated are the instances whose termination was requested, with the ids that NodeClaims have.
	terminated map[string]string
	// ahead is how far lifecycle's clock is ahead of that of the specs.
	ahead time.Duration
	// ranking is the input of a pass that ranks nodes.
	ranking RankingInput
	// lastPass is the time of the specs' clock in the last pass.
	lastPass time.Time
}

func now() time.Time {
	if current.system == nil {
		return current.clock.Now()
	}
	return current.clock.Now().Add(current.system.ahead)
}

// newSystem starts the service. config is that of the specs' API server.
func newSystem(config *rest.Config) (*system, error) {
	client, err := kubecluster.New(rest.CopyConfig(config), "joist-lifecycle")
	if err != nil {
		return nil, fmt.Errorf("connecting lifecycle to the API server of the specs: %w", err)
	}
	memory := memcluster.New(memcluster.Options{Now: now})
	out := &system{
		client:     &specClient{Client: client, memory: memory.ClientFor("lifecycle"), written: map[written]cluster.Object{}, changed: map[cluster.Kind]bool{}, evicted: map[types.UID]bool{}},
		cache:      cluster.NewStores(kinds, lifecycle.Trims()),
		blobs:      memblob.New(memblob.Options{Now: now}),
		launcher:   memqueue.New(memqueue.Options{Now: now}).Queue("launcher", memqueue.QueueOptions{}),
		terminated: map[string]string{},
		maker:      event.Maker{Service: "specs", Cluster: clusterIdentity},
	}
	out.service = lifecycle.New(lifecycle.Config{
		Client: out.client, Cache: out.cache, Blobs: out.blobs, Launcher: out.launcher, Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "specs", Alone: true, Region: "test-region",
		Settings: planning.Settings{PlanDRARequests: true}, ReservedCapacity: true, Now: now, Metrics: recordMetric,
	})
	return out, nil
}

// servedWithin is how long the API server may take to serve a kind that was just installed.
const servedWithin = 10 * time.Second

// refresh reads all objects, as watches would have delivered them.
func (s *system) refresh(ctx context.Context) error {
	s.client.takeChanged()
	return s.read(ctx, kinds)
}

// refreshChanged reads the objects of the kinds that the service has written. Nothing else writes during a pass.
func (s *system) refreshChanged(ctx context.Context) error {
	return s.read(ctx, s.client.takeChanged())
}

func (s *system) read(ctx context.Context, some []cluster.Kind) error {
	for _, kind := range some {
		objects, err := s.list(ctx, kind)
		if err != nil {
			return err
		}
		s.cache[kind].Replace(objects)
	}
	switch s.client.controller {
	case Launching, Drifting:
		s.addNodeClasses()
	case Tagging:
		s.registerNodes()
	}
	return nil
}

// list lists the objects of a kind that may just have been installed.
func (s *system) list(ctx context.Context, kind cluster.Kind) (objects []cluster.Object, err error) {
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, servedWithin, true, func(ctx context.Context) (_ bool, err error) {
		objects, err = s.client.List(ctx, kind, "")
		if fault.Is(err, fault.Throttled) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return objects, nil
}

// addNodeClasses adds the node classes that do not exist and that NodeClaims name. Few specs create one, because Karpenter's
// controllers read none.
func (s *system) addNodeClasses() {
	for _, c := range cluster.ListCached[*karpenter.NodeClaim](s.cache, cluster.NodeClaims) {
		if ref := c.Spec.NodeClassRef; ref != nil {
			if _, exists := s.cache.Get(cluster.NodeClasses, cluster.Key{Name: ref.Name}); !exists {
				class := &karpenter.EC2NodeClass{}
				class.Name, class.Status.Subnets = ref.Name, []karpenter.Subnet{{ID: classSubnet}}
				s.cache[cluster.NodeClasses].Put(class)
			}
		}
	}
}

// handle sends a message to the service.
func (s *system) handle(ctx context.Context, body event.Body) error {
	e, err := s.maker.New(now(), body, nil)
	if err != nil {
		return fmt.Errorf("creating a message: %w", err)
	}
	return s.handleMessage(ctx, e)
}

func (s *system) handleMessage(ctx context.Context, e event.Envelope) error {
	if err := s.refreshChanged(ctx); err != nil {
		return err
	}
	return s.service.Handle(ctx, e)
}
