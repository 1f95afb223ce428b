package lifecyclepass

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// maxReconciles limits the reconciles of a pass. A claim needs at most ten writes from its creation to its initialization.
const maxReconciles = 25

// Karpenter's intervals, which some specs compare. Joist reconciles each second.
const (
	drainInterval       = time.Second
	staticInterval      = time.Minute
	terminationInterval = 5 * time.Second
)

// Launching is the controller that launches NodeClaims. During passes of all others, NodeClaims without an instance are
// not launched.
const Launching = "nodeclaim/lifecycle"

// Controllers whose pass needs more than the objects of the specs: instances and instance types, and policies of repair.
const (
	Drifting        = "nodeclaim/disruption"
	LegacyRepairing = "node/legacyrepair"
	Deprovisioning  = "static/deprovisioning"
)

// running is held during a pass: a spec may reconcile several objects at once, and the service reconciles all of them.
var running sync.Mutex

// Reconcile runs a pass in place of the controller that is named by its folder, such as "nodeclaim/lifecycle". The result
// has Karpenter's interval if the object is being deleted.
func Reconcile[T client.Object](ctx context.Context, controller string, object T) (reconcile.Result, error) {
	running.Lock()
	defer running.Unlock()
	s, err := currentSystem()
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := s.pass(ctx, controller); err != nil {
		return reconcile.Result{}, err
	}
	return nextReconcile(ctx, object)
}

// passAnew runs a pass of a service that is created again, so that it acts whether or not its intervals have passed. prepare
// changes it before; nil changes nothing.
func passAnew(ctx context.Context, controller string, prepare func(*system)) (*system, error) {
	running.Lock()
	defer running.Unlock()
	current.system = nil
	s, err := currentSystem()
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		prepare(s)
	}
	return s, s.pass(ctx, controller)
}

// IsRemovalRequested reports whether lifecycle requested the pod's removal in the last pass.
func IsRemovalRequested(object metav1.Object) bool {
	return current.system != nil && current.system.client.evicted[object.GetUID()]
}

// currentSystem returns the running service. A spec sets the clock back for the next spec, as no clock of a process does.
// The service is then created again.
func currentSystem() (*system, error) {
	if s := current.system; s == nil || current.clock.Now().Before(s.lastPass) {
		s, err := newSystem(current.config)
		if err != nil {
			return nil, err
		}
		current.system = s
	}
	current.system.lastPass = current.clock.Now()
	return current.system, nil
}

// pass reconciles until nothing is written.
func (s *system) pass(ctx context.Context, controller string) error {
	clear(s.client.evicted)
	s.client.controller = controller
	failures := []error{s.reconcileNothing(ctx), s.refresh(ctx)}
	switch controller {
	case Launching:
		s.service.Settings.PlanDRARequests = !options.FromContext(ctx).IgnoreDRARequests
		failures = append(failures, s.forgetInventedInstances(ctx))
	case Drifting:
		failures = append(failures, s.sendDriftInventory(ctx))
	case Deprovisioning:
		s.service.StaticCapacity = true
	case Buffering:
		s.service.CapacityBuffers = true
	case Ranking:
		failures = append(failures, s.prepareRanking(ctx))
	case LegacyRepairing:
		s.service.LegacyRepair = legacyPolicies()
	}
	failures = append(failures, s.reportGone(ctx))
	s.commands, s.failed = s.failed, nil
	for i := range maxReconciles {
		if controller == Launching {
			failures = append(failures, s.planLaunches(ctx))
		}
		failures = append(failures, s.refreshChanged(ctx), s.service.Step(ctx), s.answerCommands(ctx))
		if s.client.takeWrites() > 0 {
			continue
		}
		if controller == Launching && i > 0 {
			current.clock.Sleep(time.Second) // As Karpenter's controller does after a write.
		}
		return errors.Join(append(failures, s.client.awaitSpecCache(ctx, current.client))...)
	}
	return fmt.Errorf("lifecycle still writes after %d reconciles: %w", maxReconciles, errors.Join(failures...))
}

// reconcileNothing makes the first reconcile of the service, which counts no changes, one without objects.
func (s *system) reconcileNothing(ctx context.Context) error {
	if s.service.Reconciled() {
		return nil
	}
	for _, kind := range kinds {
		s.cache[kind].Replace(nil)
	}
	return s.service.Step(ctx)
}

// forgetInventedInstances removes the instance from each NodeClaim that is not launched and whose instance the cloud
// provider does not have: the specs invent one for each NodeClaim, and Karpenter's controller overwrites it.
func (s *system) forgetInventedInstances(ctx context.Context) error {
	instances, err := s.listInstances(ctx)
	if err != nil {
		return err
	}
	for _, c := range cluster.ListCached[*karpenter.NodeClaim](s.cache, cluster.NodeClaims) {
		if c.DeletionTimestamp != nil || c.Status.ProviderID == "" || instances[c.Status.ProviderID] || c.Status.Conditions.IsTrue(karpenter.ConditionTypeLaunched) || !isManaged(c) {
			continue
		}
		c = c.DeepCopy()
		c.Status.ProviderID = ""
		if _, err := s.client.UpdateStatus(ctx, c); err != nil {
			return fmt.Errorf("removing the instance from NodeClaim %s: %w", c.Name, err)
		}
	}
	return s.refreshChanged(ctx)
}

func isManaged(c *karpenter.NodeClaim) bool {
	return c.Spec.NodeClassRef == nil || c.Spec.NodeClassRef.Kind == cluster.NodeClasses.Kind
}

// listInstances returns the cloud provider's instances by their id.
func (s *system) listInstances(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	if current.cloud == nil { // Some suites make a cloud provider without instances of their own.
		return out, nil
	}
	instances, err := current.cloud.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the instances: %w", err)
	}
	for _, i := range instances {
		out[i.Status.ProviderID] = true
	}
	return out, nil
}

// reportGone reports the instances of claims that are being deleted and that the cloud provider does not have. EC2
// reports the end of an instance whose termination was requested. Others are missing in two inventories.
func (s *system) reportGone(ctx context.Context) error {
	instances, err := s.listInstances(ctx)
	if err != nil {
		return err
	}
	failures, missing := []error(nil), false
	for _, c := range cluster.ListCached[*karpenter.NodeClaim](s.cache, cluster.NodeClaims) {
		id, err := c.Instance()
		switch {
		case c.DeletionTimestamp == nil || err != nil || instances[c.Status.ProviderID] || !isManaged(c):
		case s.terminated[id.InstanceID] != "":
			err = s.handle(ctx, event.InstanceGone{InstanceID: id.InstanceID, Shown: now()})
			if !fault.Is(err, fault.Retry, fault.Stale) {
				failures = append(failures, err)
			}
		default:
			missing = true
		}
	}
	if missing {
		failures = append(failures, s.sendInventories(ctx))
	}
	return errors.Join(failures...)
}

// nextReconcile returns when Karpenter would reconcile the object again.
func nextReconcile(ctx context.Context, object client.Object) (reconcile.Result, error) {
	now := object.DeepCopyObject().(client.Object)
	switch err := current.client.Get(ctx, client.ObjectKeyFromObject(object), now); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading the reconciled object: %w", err)
	}
	return reconcile.Result{RequeueAfter: intervalOf(now)}, nil
}

// intervalOf returns after which time Karpenter reconciles the object again; 0 if only a change of it matters. A Node of
// another provider's node class is removed by neither Karpenter nor Joist.
func intervalOf(object client.Object) time.Duration {
	isDeleting := object.GetDeletionTimestamp() != nil
	interval := time.Duration(0)
	switch o := object.(type) {
	case *corev1.Pod:
		if isDeleting || IsRemovalRequested(o) { // Its eviction was refused.
			interval = drainInterval
		}
	case *corev1.Node:
		if isDeleting && o.Labels[karpenter.LabelEC2NodeClass] != "" {
			interval = drainInterval
		}
	case *karpv1.NodeClaim:
		switch {
		case isDeleting && o.StatusConditions().IsTrue(karpv1.ConditionTypeInstanceTerminating):
			interval = terminationInterval
		case isDeleting, o.StatusConditions().IsTrue(karpv1.ConditionTypeRebooting):
			interval = drainInterval
		}
	case *karpv1.NodePool:
		if !isDeleting && o.Spec.Replicas != nil && o.Spec.Template.Spec.NodeClassRef.Kind == cluster.NodeClasses.Kind {
			interval = staticInterval
		}
	}
	return interval
}
