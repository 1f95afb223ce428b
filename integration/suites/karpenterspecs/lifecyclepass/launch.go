package lifecyclepass

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// planLaunches sends a plan that launches the NodeClaims that the specs created, as the planner does for NodeClaims that
// people create.
func (s *system) planLaunches(ctx context.Context) error {
	for _, c := range cluster.ListCached[*karpenter.NodeClaim](s.cache, cluster.NodeClaims) {
		if !launchspec.WaitsUnplanned(c) || c.Status.Conditions.IsTrue(karpenter.ConditionTypeLaunched) {
			continue
		}
		if err := s.planLaunch(ctx, c); err != nil {
			return fmt.Errorf("planning the launch of %s: %w", c.Name, err)
		}
	}
	return nil
}

func (s *system) planLaunch(ctx context.Context, c *karpenter.NodeClaim) error {
	held, err := s.sendBatch(ctx)
	if err != nil {
		return err
	}
	types, err := s.typeFacts(ctx, c)
	if err != nil {
		return err
	}
	id := string(c.UID)
	intent := launchspec.Intent{
		ID: id, Cluster: clusterIdentity.Name, NodePool: c.Labels[karpenter.NodePoolLabelKey], Claims: []string{c.Name},
		Fleet: cloud.FleetRequest{Token: id, Count: 1, CapacityType: cloud.OnDemand}, Types: types,
	}
	ref, err := blob.Put(ctx, s.blobs, now(), launchspec.Kind, intent)
	if err != nil {
		return err
	}
	object := karpenter.NodeClaim{}
	object.Name, object.UID, object.Labels = c.Name, c.UID, map[string]string{karpenter.LabelEC2NodeClass: c.Spec.NodeClassRef.Name}
	object.Annotations = map[string]string{
		launchspec.IntentTag: id, launchspec.IntentRefAnnotation: launchspec.FormatRef(ref), launchspec.ClaimsAnnotation: "1",
		launchspec.UnplannedAnnotation: "true", launchspec.CeilingAnnotation: `{}`,
	}
	return s.answerBatch(ctx, held, planning.Plan{Intents: []planning.PlannedIntent{{
		ID: id, Ref: ref, NodePool: intent.NodePool,
		Claims: []planning.PlannedClaim{{Object: object, Ceiling: corev1.ResourceList{planning.PriceResource: resource.MustParse("0")}}},
	}}})
}

// sendBatch records a new batch in the outbox, as the watcher does.
func (s *system) sendBatch(ctx context.Context) (outbox.Stored, error) {
	held, err := outbox.Read(ctx, s.client, namespace)
	if err != nil {
		return held, err
	}
	return held.Swap(ctx, s.client, outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Sent, Batch: event.Ref{
		Kind: planning.BatchKind, Digest: event.DigestOf([]byte(strconv.FormatUint(held.Seq, 10))), Size: 1,
	}})
}

// answerBatch sends the plan of the batch.
func (s *system) answerBatch(ctx context.Context, held outbox.Stored, plan planning.Plan) error {
	plan.Outbox, plan.Seq, plan.Batch = held.UID(), held.Seq, held.Batch
	stored, err := blob.Put(ctx, s.blobs, now(), planning.PlanKind, plan)
	if err != nil {
		return err
	}
	return s.handle(ctx, event.PlanMade{Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Plan: stored})
}

// typeFacts returns the facts about the instance types that the cloud provider may launch.
func (s *system) typeFacts(ctx context.Context, c *karpenter.NodeClaim) (map[string]launchspec.TypeFacts, error) {
	pool := &karpv1.NodePool{}
	pool.Name = c.Labels[karpenter.NodePoolLabelKey]
	types, err := current.cloud.GetInstanceTypes(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("reading the instance types: %w", err)
	}
	out := map[string]launchspec.TypeFacts{}
	for _, t := range types {
		labels := map[string]string{}
		for key, r := range t.Requirements {
			if values := r.Values(); r.Operator() == corev1.NodeSelectorOpIn && len(values) == 1 && !isOfOffering(key) {
				labels[key] = values[0]
			}
		}
		out[t.Name] = launchspec.TypeFacts{Capacity: withoutZeros(t.Capacity), Allocatable: withoutZeros(t.Allocatable()), Labels: labels}
	}
	return out, nil
}

func isOfOffering(key string) bool {
	return key == corev1.LabelTopologyZone || key == karpenter.CapacityTypeLabelKey || key == corev1.LabelInstanceTypeStable
}

func withoutZeros(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range list {
		if !quantity.IsZero() {
			out[name] = quantity
		}
	}
	return out
}

// maxReceived is the number of messages that a queue delivers at once.
const maxReceived = 10

// answerCommands executes lifecycle's commands with the cloud provider. A command that fails is executed again in the
// next pass.
func (s *system) answerCommands(ctx context.Context) error {
	commands, err := s.receiveCommands(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, e := range commands {
		if err := s.answerCommand(ctx, e); err != nil {
			s.failed, failures = append(s.failed, e), append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// receiveCommands takes the failed commands and all messages of the queue.
func (s *system) receiveCommands(ctx context.Context) ([]event.Envelope, error) {
	out := s.commands
	s.commands = nil
	for {
		messages, err := s.launcher.Receive(ctx, maxReceived, 0, time.Hour)
		if err != nil || len(messages) == 0 {
			return out, err
		}
		for _, m := range messages {
			e, err := event.Decode(m.Body)
			if err != nil {
				return out, err
			}
			out = append(out, e)
			if err := s.launcher.Delete(ctx, m.Receipt); err != nil {
				return out, err
			}
		}
	}
}

func (s *system) answerCommand(ctx context.Context, e event.Envelope) error {
	if current.account != nil {
		if err := current.account.Execute(ctx, e); !fault.Is(err, fault.Retry, fault.Foreign) { // The queue repeats or drops these.
			return err
		}
		return nil
	}
	switch e.Type {
	case event.LaunchRequestedType:
		body, err := event.DecodeBody[event.LaunchRequested](e)
		if err != nil {
			return err
		}
		return s.launch(ctx, body)
	case event.TerminateRequestedType:
		body, err := event.DecodeBody[event.TerminateRequested](e)
		if err != nil {
			return err
		}
		return s.terminate(ctx, body)
	case event.RebootRequestedType:
		body, err := event.DecodeBody[event.RebootRequested](e)
		if err != nil || e.HasExpired(now()) { // The launcher drops a request that has expired.
			return err
		}
		return s.reboot(ctx, body)
	}
	return nil
}

// launch calls Create with the NodeClaim as the specs' client reads it.
func (s *system) launch(ctx context.Context, body event.LaunchRequested) error {
	intent, err := blob.Get[launchspec.Intent](ctx, s.blobs, body.IntentRef)
	if err != nil {
		return err
	}
	if err := s.client.awaitSpecCache(ctx, current.client); err != nil {
		return err
	}
	claim := &karpv1.NodeClaim{}
	if err := current.client.Get(ctx, client.ObjectKey{Name: intent.Claims[0]}, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	created, err := current.cloud.Create(ctx, claim)
	settled := event.LaunchSettled{Intent: body.Intent, Wanted: 1, Spent: true}
	if refusal, refused := refusalOf(err); refused {
		settled.Refusals = []event.Refusal{refusal}
		return s.handle(ctx, settled)
	}
	if err != nil {
		return err
	}
	id, err := karpenter.ParseProviderID(created.Status.ProviderID)
	if err != nil {
		return err
	}
	settled.Instances = []event.Launched{{InstanceID: id.InstanceID, Offering: offeringOf(created), ImageID: created.Status.ImageID}}
	return s.handle(ctx, settled)
}

// refusalOf returns the launcher's answer for an error of Create with which Karpenter deletes the NodeClaim. Both repeat
// the request after other errors.
func refusalOf(err error) (event.Refusal, bool) {
	switch {
	case cloudprovider.IsInsufficientCapacityError(err):
		blamed := event.Offering{InstanceType: "default-instance-type", Zone: "test-zone-1", CapacityType: cloud.OnDemand}
		return event.Refusal{Code: "InsufficientInstanceCapacity", Message: err.Error(), Blamed: []event.Offering{blamed}}, true
	case cloudprovider.IsNodeClassNotReadyError(err):
		return event.Refusal{Code: "NodeClassNotReady", Message: err.Error()}, true
	}
	return event.Refusal{}, false
}

func offeringOf(c *karpv1.NodeClaim) event.Offering {
	return event.Offering{InstanceType: c.Labels[corev1.LabelInstanceTypeStable], Zone: c.Labels[corev1.LabelTopologyZone], CapacityType: c.Labels[karpenter.CapacityTypeLabelKey]}
}

// terminate calls Delete for the instance. Its end is reported in the next pass.
func (s *system) terminate(ctx context.Context, body event.TerminateRequested) error {
	claim := &karpv1.NodeClaim{}
	err := current.client.Get(ctx, client.ObjectKey{Name: body.Claim}, claim)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil { // The NodeClaim was released together with a last request.
		claim.Name, claim.Status.ProviderID = body.Claim, s.terminated[body.InstanceID]
	}
	if err := current.cloud.Delete(ctx, claim); cloudprovider.IgnoreNodeClaimNotFoundError(err) != nil {
		return err
	}
	s.terminated[body.InstanceID] = claim.Status.ProviderID
	return nil
}
