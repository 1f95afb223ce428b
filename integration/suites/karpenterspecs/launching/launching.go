// Package launching answers Karpenter's calls that create, terminate, reboot and tag instances with Joist's launch
// requests and launcher, and its checks of drift with inventories of Joist's catalog service, so that the specs of
// Karpenter's AWS provider judge Joist. It knows Karpenter's objects, and nothing of the packages whose specs run, which
// import it.
package launching

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Region is the region of Karpenter's specs.
const Region = "us-west-2"

// FakeLauncher is Joist's launcher with an EC2 fake of Karpenter's specs.
type FakeLauncher struct {
	account account
	cloud   ec2cloud.Cloud

	mu sync.Mutex
	// cache is the launcher's cache during the spec, and hardware are the instance types that the fake described in it.
	spec     string
	cache    *launcher.LaunchCache
	hardware []catalog.InstanceType
	calls    int
}

var (
	servicesMutex sync.Mutex
	services      = map[any]*FakeLauncher{}
)

// ForFake returns the service of an EC2 fake. Its caches are emptied when a new spec begins.
func ForFake(fake any, spec string) *FakeLauncher {
	servicesMutex.Lock()
	defer servicesMutex.Unlock()
	s := services[fake]
	if s == nil {
		account := newAccount(fake)
		s = &FakeLauncher{account: account, cloud: ec2cloud.New(account.config)}
		services[fake] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil || s.spec != spec {
		s.spec, s.cache, s.hardware = spec, launcher.NewLaunchCache(launcher.Limits{}), nil
	}
	return s
}

// ClaimLaunch is a NodeClaim to launch.
type ClaimLaunch struct {
	NodeClass *awsv1.EC2NodeClass
	NodeClaim *karpv1.NodeClaim
	// Types are the instance types of the region with their offerings.
	Types    []*cloudprovider.InstanceType
	Cluster  catalog.ClusterFacts
	Settings planning.Settings
	Overlays []karpenter.NodeOverlay
	// FreeAddresses are the free addresses of the account's subnets, by id.
	FreeAddresses map[string]int32
}

// LaunchAnswer is the result of a launch.
type LaunchAnswer struct {
	// Unlaunchable is why Joist does not call EC2, or "".
	Unlaunchable string
	Intent       launchspec.Intent
	Result       event.LaunchSettled
}

// LaunchClaim launches a NodeClaim as Joist launches one that a user created.
func (s *FakeLauncher) LaunchClaim(ctx context.Context, r ClaimLaunch) (LaunchAnswer, error) {
	built, err := s.buildLaunch(ctx, r)
	if err != nil {
		return LaunchAnswer{}, err
	}
	if refused := built.Plan.UnlaunchableClaims; len(refused) > 0 {
		return LaunchAnswer{Unlaunchable: refused[0].Reason}, nil
	}
	out := LaunchAnswer{Intent: built.Intents[0]}
	blobs := memblob.New(memblob.Options{Now: time.Now})
	ref, err := blob.Put(ctx, blobs, time.Now(), launchspec.Kind, out.Intent)
	if err != nil {
		return out, fmt.Errorf("storing the intent: %w", err)
	}
	bus := &recordingBus{}
	request := event.LaunchRequested{Intent: out.Intent.ID, IntentRef: ref, Claims: len(out.Intent.Claims)}
	if err := s.handleMessage(ctx, r.Cluster.Name, request, blobs, bus); err != nil {
		return out, err
	}
	out.Result, err = event.DecodeBody[event.LaunchSettled](bus.published[0])
	return out, err
}

// buildLaunch writes the launch request of the NodeClaim.
func (s *FakeLauncher) buildLaunch(ctx context.Context, r ClaimLaunch) (launchspec.Built, error) {
	class, claim := karpenter.EC2NodeClass{}, karpenter.NodeClaim{}
	if err := convertObject(r.NodeClass, &class); err != nil {
		return launchspec.Built{}, err
	}
	if err := convertObject(r.NodeClaim, &claim); err != nil {
		return launchspec.Built{}, err
	}
	// Karpenter's cloud provider checks this condition before it launches.
	class.Status.Conditions = class.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Ready"}, time.Now())
	cat, unavailable, err := s.newCatalogue(ctx, r)
	if err != nil {
		return launchspec.Built{}, err
	}
	s.mu.Lock()
	s.calls++
	seq := s.calls
	s.mu.Unlock()
	return launchspec.Build(planning.Batch{Outbox: s.spec, Seq: uint64(seq), Unplanned: []karpenter.NodeClaim{claim}, Snapshot: planning.Snapshot{
		TakenAt: time.Now(), Cluster: r.Cluster.Name, UID: "specs", Settings: r.Settings,
		NodeClasses: []karpenter.EC2NodeClass{class}, NodeOverlays: r.Overlays, Unavailable: unavailable,
	}}, event.Ref{}, planning.Result{}, cat)
}

// handleMessage passes a message to the launcher.
func (s *FakeLauncher) handleMessage(ctx context.Context, cluster string, body event.Body, blobs blob.Store, bus queue.Sender) error {
	service := launcher.Service{
		EC2: s.cloud, Blobs: blobs, Bus: bus, Cluster: event.Cluster{Name: cluster, UID: "specs"}, Now: time.Now, Cache: s.cache,
	}
	e, err := event.Maker{Service: "lifecycle", Cluster: service.Cluster}.New(time.Now(), body, nil)
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	return service.Handle(ctx, e)
}

// recordingBus records the published events.
type recordingBus struct {
	published []event.Envelope
}

// Send records the events.
func (b *recordingBus) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.published = append(b.published, e)
	}
	return nil
}

// convertObject converts an object of Karpenter's type to Joist's type of the same kind.
func convertObject(from metav1.Object, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("writing %s: %w", from.GetName(), err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading %s: %w", from.GetName(), err)
	}
	return nil
}
