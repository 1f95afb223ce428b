package interrupted

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/karpenter-provider-aws/pkg/cache"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
)

// provider is Karpenter's interface to SQS, with its own batch size and visibility
// timeout.
type provider struct{ queue far }

func (p provider) Name() string { return "notices" }

func (p provider) GetSQSMessages(ctx context.Context) ([]*sqstypes.Message, error) {
	const batch, wait, visibility = 10, 20 * time.Second, 20 * time.Second
	received, err := p.queue.Receive(ctx, batch, wait, visibility)
	if err != nil {
		return nil, err
	}
	out := make([]*sqstypes.Message, len(received))
	for i, m := range received {
		out[i] = &sqstypes.Message{Body: aws.String(string(m.Body)), MessageId: aws.String(m.ID), ReceiptHandle: aws.String(m.Receipt)}
	}
	return out, nil
}

func (p provider) SendMessage(context.Context, any) (string, error) {
	return "", errors.New("sending: the messages of the comparison are already in the queue")
}

func (p provider) DeleteSQSMessage(ctx context.Context, m *sqstypes.Message) error {
	return p.queue.Delete(ctx, aws.ToString(m.ReceiptHandle))
}

// store answers lists by instance as an informer's index does, with copies, and sends
// deletions over the link. Other calls panic.
type store struct {
	client.Client
	link   *link
	claims map[string]*karpv1.NodeClaim
	nodes  map[string]*corev1.Node
}

func newStore(l *link, messages []Message) *store {
	s := &store{link: l, claims: map[string]*karpv1.NodeClaim{}, nodes: map[string]*corev1.Node{}}
	for _, m := range messages {
		if !m.Known {
			continue
		}
		labels := map[string]string{
			karpv1.NodePoolLabelKey: "default", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeSpot,
			corev1.LabelInstanceTypeStable: "m6i.large", corev1.LabelTopologyZone: region + "a",
		}
		providerID := "aws:///" + region + "a/" + m.Instance
		s.claims[m.Instance] = &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: m.Instance, Labels: labels}, Status: karpv1.NodeClaimStatus{ProviderID: providerID, NodeName: m.Instance},
		}
		s.nodes[m.Instance] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Instance, Labels: labels}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	}
	return s
}

// List returns claims and nodes by instance.
func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	switch list := into.(type) {
	case *karpv1.NodeClaimList:
		if id, exact := o.FieldSelector.RequiresExactMatch("status.instanceID"); exact && s.claims[id] != nil {
			list.Items = append(list.Items, *s.claims[id].DeepCopy())
		}
	case *corev1.NodeList:
		if id, exact := o.FieldSelector.RequiresExactMatch("spec.instanceID"); exact && s.nodes[id] != nil {
			list.Items = append(list.Items, *s.nodes[id].DeepCopy())
		}
	default:
		return fmt.Errorf("listing %T: the store of the comparison has none", into)
	}
	return nil
}

// Delete is a call to the API server.
func (s *store) Delete(ctx context.Context, _ client.Object, _ ...client.DeleteOption) error {
	return s.link.pass(ctx)
}

// quiet drops Kubernetes Events.
type quiet struct{}

func (quiet) Publish(...events.Event) {}

// readyKarpenter calls Reconcile as controller-runtime calls a singleton: again at once
// after success, and with the default rate limiter after an error.
func readyKarpenter(_ context.Context, b *bench, messages []Message) (func(ctx context.Context) error, error) {
	controller := interruption.NewController(newStore(&b.toAPI, messages), clock.RealClock{}, nil, quiet{},
		provider{b.far()}, nil, cache.NewUnavailableOfferings())
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	return func(ctx context.Context) error {
		ctx = log.IntoContext(ctx, logr.Discard())
		for ctx.Err() == nil {
			if _, err := controller.Reconcile(ctx); err == nil {
				limiter.Forget("")
				continue
			}
			select {
			case <-time.After(limiter.When("")):
			case <-ctx.Done():
			}
		}
		return nil
	}, nil
}
