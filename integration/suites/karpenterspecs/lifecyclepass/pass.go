package lifecyclepass

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

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
	terminationInterval = 5 * time.Second
)

// Launching is the controller that launches NodeClaims. During passes of all others, NodeClaims without an instance are
// not launched.
const Launching = "nodeclaim/lifecycle"

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

// IsRemovalRequested reports whether lifecycle requested the pod's removal in the last pass.
func IsRemovalRequested(object metav1.Object) bool {
	return current.system != nil && current.system.client.evicted[object.GetUID()]
}

func currentSystem() (*system, error) {
	if current.system == nil {
		s, err := newSystem(current.config)
		if err != nil {
			return nil, err
		}
		current.system = s
	}
	return current.system, nil
}

// pass reconciles until nothing is written.
func (s *system) pass(ctx context.Context, controller string) error {
	clear(s.client.evicted)
	s.client.controller = controller
	failures := []error{s.refresh(ctx)}
	if controller == Launching {
		failures = append(failures, s.forgetInventedInstances(ctx))
	}
	failures = append(failures, s.reportGone(ctx))
	s.commands, s.failed = s.failed, nil
	for range maxReconciles {
		if controller == Launching {
			failures = append(failures, s.planLaunches(ctx))
		}
		failures = append(failures, s.refresh(ctx), s.service.Step(ctx), s.answerCommands(ctx))
		if s.client.takeWrites() > 0 {
			continue
		}
		return errors.Join(append(failures, s.client.awaitSpecCache(ctx, current.client))...)
	}
	return fmt.Errorf("lifecycle still writes after %d reconciles: %w", maxReconciles, errors.Join(failures...))
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
	return s.refresh(ctx)
}

func isManaged(c *karpenter.NodeClaim) bool {
	return c.Spec.NodeClassRef == nil || c.Spec.NodeClassRef.Kind == cluster.NodeClasses.Kind
}

// listInstances returns the cloud provider's instances by their id.
func (s *system) listInstances(ctx context.Context) (map[string]bool, error) {
	instances, err := current.cloud.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the instances: %w", err)
	}
	out := map[string]bool{}
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
		case s.terminated[id.InstanceID]:
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
	err := current.client.Get(ctx, client.ObjectKeyFromObject(object), now)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the reconciled object: %w", err)
	}
	if err != nil || now.GetDeletionTimestamp() == nil || isOthersNode(now) {
		if _, isPod := now.(*corev1.Pod); isPod && err == nil && IsRemovalRequested(now) { // Its eviction was refused.
			return reconcile.Result{RequeueAfter: drainInterval}, nil
		}
		return reconcile.Result{}, nil
	}
	if claim, ok := now.(*karpv1.NodeClaim); ok && claim.StatusConditions().IsTrue(karpv1.ConditionTypeInstanceTerminating) {
		return reconcile.Result{RequeueAfter: terminationInterval}, nil
	}
	return reconcile.Result{RequeueAfter: drainInterval}, nil
}

// isOthersNode reports whether the object is a Node of another provider's node class, which neither Karpenter nor Joist
// removes.
func isOthersNode(object client.Object) bool {
	node, ok := object.(*corev1.Node)
	return ok && node.Labels[karpenter.LabelEC2NodeClass] == ""
}
