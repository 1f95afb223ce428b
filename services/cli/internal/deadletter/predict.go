package deadletter

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

const interruptionService = "interruption"

// predictDisposition predicts what the service does with a body at now.
func (r Reader) predictDisposition(body []byte, now time.Time) Prediction {
	m := queue.Message{Body: body, Sent: now, Receives: 1}
	clock := func() time.Time { return now }
	var err error
	switch r.Service {
	case interruptionService:
		err = r.checkInterruption(m, clock)
	case topology.Audit:
		return r.predictAudit(body)
	default:
		err = r.checkService(m, clock)
	}
	return r.applyFence(r.predictFromError(err, m), m)
}

// checkService runs the checks that a service makes before it handles a message.
func (r Reader) checkService(m queue.Message, now func() time.Time) error {
	e, err := host.OpenEnvelope(host.EnvelopeFilter{Cluster: r.Cluster, Types: consumedTypes(r.Service), Now: now}, m)
	if err != nil {
		return err
	}
	if check := bodyChecks[e.Type]; check != nil {
		if err := check(e); err != nil {
			return err
		}
	}
	return errWouldHandle
}

// errWouldHandle ends a check at the point where the service would begin to handle the message.
var errWouldHandle = errors.New("the service would handle it")

// checkInterruption calls the handler of interruption with a client whose first call fails. That
// call checks whether the instance belongs to the cluster.
func (r Reader) checkInterruption(m queue.Message, now func() time.Time) error {
	s := interruption.Service{EC2: noopAWS{}, Statuses: noopAWS{}, Bus: noopAWS{}, Cluster: r.Cluster, Now: now}
	return s.Handle(context.Background(), m)
}

// predictAudit predicts the result for a fact of the audit log. The log stores expired facts,
// too, but only the ones that its rule selects.
func (r Reader) predictAudit(body []byte) Prediction {
	e, err := r.decodeEnvelope(body)
	switch {
	case err != nil:
		return Prediction{Poison, "it has no valid fact of Joist: " + err.Error()}
	case !r.Cluster.Matches(e.SourceCluster()):
		return Prediction{Poison, "it belongs to cluster " + strconv.Quote(e.Cluster) + ", whose facts the rule does not select"}
	}
	return Prediction{Handle, "the bus archive would write it to the audit log again"}
}

// noopAWS fails every call with errWouldHandle.
type noopAWS struct{}

func (noopAWS) DescribeInstances(context.Context, cloud.InstanceFilter) ([]cloud.Instance, error) {
	return nil, errWouldHandle
}

func (noopAWS) DescribeStatus(context.Context) ([]cloud.Status, error) {
	return nil, errWouldHandle
}

func (noopAWS) Send(context.Context, ...queue.Outgoing) error { return errWouldHandle }

// predictFromError converts the error into a prediction, like the host.
func (r Reader) predictFromError(err error, m queue.Message) Prediction {
	if err == nil || errors.Is(err, errWouldHandle) {
		return Prediction{Handle, r.describeUncertainty(m)}
	}
	why := errorText(err)
	switch host.DecideDisposition(err, m).Action {
	case host.Delete:
		return Prediction{Noop, why}
	case host.MoveToDLQ:
		return Prediction{Poison, why}
	default:
		return Prediction{Handle, why}
	}
}

// errorText returns an error without its hint, which is for operators of the service.
func errorText(err error) string {
	return strings.TrimSuffix(err.Error(), " (try: "+fault.FindHint(err)+")")
}

// describeUncertainty describes what the message alone does not determine.
func (r Reader) describeUncertainty(m queue.Message) string {
	e, err := event.Decode(m.Body)
	switch {
	case err != nil && r.Service == interruptionService:
		return "dropped unless the instance has the cluster's tags"
	case err == nil && e.Type == event.PlanMadeType:
		return "dropped if the outbox no longer waits for this plan"
	case err == nil && e.Type == event.DisruptionProposedType:
		return "executed only after a later snapshot confirms it"
	}
	return ""
}

// consumedTypes returns the types that a service handles.
func consumedTypes(service string) []event.Type {
	var types []event.Type
	for i := range event.Specs {
		if slices.Contains(event.Specs[i].Consumers, service) {
			types = append(types, event.Specs[i].Type)
		}
	}
	return types
}

// bodyChecks decode and validate the body of each type.
var bodyChecks = map[event.Type]func(event.Envelope) error{
	event.PodsUnschedulableType:  checkBody[event.PodsUnschedulable],
	event.ClusterSnapshotType:    checkBody[event.ClusterSnapshot],
	event.NodeClassChangedType:   checkBody[event.NodeClassChanged],
	event.InventoryWantedType:    checkBody[event.InventoryWanted],
	event.TickType:               checkBody[event.Tick],
	event.PlanMadeType:           checkBody[event.PlanMade],
	event.DisruptionProposedType: checkBody[event.DisruptionProposed],
	event.NodesKeptType:          checkBody[event.NodesKept],
	event.LaunchRequestedType:    checkBody[event.LaunchRequested],
	event.LaunchSettledType:      checkBody[event.LaunchSettled],
	event.TagRequestedType:       checkBody[event.TagRequested],
	event.TerminateRequestedType: checkBody[event.TerminateRequested],
	event.RebootRequestedType:    checkBody[event.RebootRequested],
	event.RebootSettledType:      checkBody[event.RebootSettled],
	event.NodeClassEnsureType:    checkBody[event.NodeClassEnsure],
	event.NodeClassEnsuredType:   checkBody[event.NodeClassEnsured],
	event.CatalogRefreshedType:   checkBody[event.CatalogRefreshed],
	event.NodeClassResolvedType:  checkBody[event.NodeClassResolved],
	event.InstancesListedType:    checkBody[event.InstancesListed],
	event.NodeNoticedType:        checkBody[event.NodeNoticed],
	event.InstanceGoneType:       checkBody[event.InstanceGone],
}

func checkBody[T event.Body](e event.Envelope) error {
	_, err := event.DecodeBody[T](e)
	return err
}
