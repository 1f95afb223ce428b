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

// predict says what would become of a body that is sent to the service now.
func (r Reader) predict(body []byte, now time.Time) Prediction {
	m := queue.Message{Body: body, Sent: now, Receives: 1}
	clock := func() time.Time { return now }
	var err error
	switch r.Service {
	case interruptionService:
		err = r.interrupted(m, clock)
	case topology.Audit:
		return r.logged(body)
	default:
		err = r.opened(m, clock)
	}
	return r.fence(r.judged(err, m), m)
}

// opened goes as far as a service of ours goes before it acts.
func (r Reader) opened(m queue.Message, now func() time.Time) error {
	e, err := host.Open(host.Accept{Cluster: r.Cluster, Types: typesOf(r.Service), Now: now}, m)
	if err != nil {
		return err
	}
	if check := checks[e.Type]; check != nil {
		if err := check(e); err != nil {
			return err
		}
	}
	return errActs
}

// errActs ends a rehearsal where the service would begin to act.
var errActs = errors.New("the service would act on it")

// interrupted asks interruption's own handler, with an EC2 that gives no answer: to ask
// whose an instance is, is the first thing that it does with a notice that counts.
func (r Reader) interrupted(m queue.Message, now func() time.Time) error {
	s := interruption.Service{EC2: silent{}, Statuses: silent{}, Bus: silent{}, Cluster: r.Cluster, Now: now}
	return s.Handle(context.Background(), m)
}

// logged is about a fact that the audit log did not take. A log takes what has expired,
// too; only what its rule would not select never comes into it.
func (r Reader) logged(body []byte) Prediction {
	e, err := r.envelope(body)
	switch {
	case err != nil:
		return Prediction{Poison, "it carries no fact of ours: " + err.Error()}
	case !r.Cluster.Agrees(e.Of()):
		return Prediction{Poison, "it is of cluster " + strconv.Quote(e.Cluster) + ", whose facts the rule does not select"}
	}
	return Prediction{Handle, "the bus's archive would say it to the audit log again"}
}

// silent is an AWS that is never asked for real.
type silent struct{}

func (silent) DescribeInstances(context.Context, cloud.InstanceFilter) ([]cloud.Instance, error) {
	return nil, errActs
}

func (silent) DescribeStatus(context.Context) ([]cloud.Status, error) {
	return nil, errActs
}

func (silent) Send(context.Context, ...queue.Outgoing) error { return errActs }

// judged reads the error as the host would.
func (r Reader) judged(err error, m queue.Message) Prediction {
	if err == nil || errors.Is(err, errActs) {
		return Prediction{Handle, r.unknown(m)}
	}
	why := said(err)
	switch host.Judge(err, m).Action {
	case host.Delete:
		return Prediction{Noop, why}
	case host.Park:
		return Prediction{Poison, why}
	default:
		return Prediction{Handle, why}
	}
}

// said is an error without its remedy, which is for who runs the service.
func said(err error) string {
	return strings.TrimSuffix(err.Error(), " (try: "+fault.HintOf(err)+")")
}

// unknown is what the message alone cannot tell.
func (r Reader) unknown(m queue.Message) string {
	e, err := event.Decode(m.Body)
	switch {
	case err != nil && r.Service == interruptionService:
		return "dropped unless the instance carries the cluster's tags"
	case err == nil && e.Type == event.PlanMadeType:
		return "dropped if the outbox no longer waits for this plan (the fence)"
	case err == nil && e.Type == event.DisruptionProposedType:
		return "acted on only once a later snapshot confirms it"
	}
	return ""
}

// typesOf are the types that a service takes, by the contract.
func typesOf(service string) []event.Type {
	var types []event.Type
	for i := range event.Specs {
		if slices.Contains(event.Specs[i].Consumers, service) {
			types = append(types, event.Specs[i].Type)
		}
	}
	return types
}

// checks read the body of each type and validate it.
var checks = map[event.Type]func(event.Envelope) error{
	event.PodsUnschedulableType:  reads[event.PodsUnschedulable],
	event.ClusterSnapshotType:    reads[event.ClusterSnapshot],
	event.NodeClassChangedType:   reads[event.NodeClassChanged],
	event.InventoryWantedType:    reads[event.InventoryWanted],
	event.TickType:               reads[event.Tick],
	event.PlanMadeType:           reads[event.PlanMade],
	event.DisruptionProposedType: reads[event.DisruptionProposed],
	event.LaunchRequestedType:    reads[event.LaunchRequested],
	event.LaunchSettledType:      reads[event.LaunchSettled],
	event.TagRequestedType:       reads[event.TagRequested],
	event.TerminateRequestedType: reads[event.TerminateRequested],
	event.NodeClassEnsureType:    reads[event.NodeClassEnsure],
	event.NodeClassEnsuredType:   reads[event.NodeClassEnsured],
	event.CatalogRefreshedType:   reads[event.CatalogRefreshed],
	event.NodeClassResolvedType:  reads[event.NodeClassResolved],
	event.InstancesListedType:    reads[event.InstancesListed],
	event.NodeNoticedType:        reads[event.NodeNoticed],
	event.InstanceGoneType:       reads[event.InstanceGone],
}

func reads[T event.Body](e event.Envelope) error {
	_, err := event.As[T](e)
	return err
}
