package kubecluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// The verbs and subresources, as access rules spell them.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbDelete = "delete"

	partStatus   = "status"
	partEviction = "eviction"
)

// call names one request, for errors and access rules.
type call struct {
	verb, part string
	kind       cluster.Kind
	key        cluster.Key
	// fields is a field selector; empty for all.
	fields string
}

// resource is what an access rule calls the thing: "pods", "pods/eviction".
func (what call) resource() string {
	if what.part == "" {
		return what.kind.Resource
	}
	return what.kind.Resource + "/" + what.part
}

func (what call) String() string {
	return strings.TrimSpace(what.verb + " " + what.resource() + " " + what.key.String())
}

func (what call) writes() bool {
	return what.verb == verbCreate || what.verb == verbUpdate || what.verb == verbDelete
}

func (what call) method() string {
	switch what.verb {
	case verbCreate:
		return http.MethodPost
	case verbUpdate:
		return http.MethodPut
	case verbDelete:
		return http.MethodDelete
	default:
		return http.MethodGet
	}
}

// judge gives an error of client-go its kind.
func (what call) judge(err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return what.unanswered(err)
	}
	told := fault.E(what.String(), what.kindOf(err), err)
	switch {
	case apierrors.IsUnauthorized(err):
		return told.WithHint("renew the credentials: the API server does not know them")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "):
		return told.WithHint("grant the verb %q on the resource %q of the API group %q to this service account",
			what.verb, what.resource(), what.kind.Group)
	case notServed(err):
		return told.WithHint("install the definition of %s %s", what.kind.APIVersion(), what.kind.Kind)
	case told.Kind == fault.Invalid && tooManyBudgets(err):
		return told.WithHint("change the budgets' selectors so that one PodDisruptionBudget covers each pod")
	}
	return told
}

// kindOf is the kind of what the server answered.
func (what call) kindOf(err error) fault.Kind {
	switch {
	case notServed(err):
		// Nothing is known of the object, least of all that it is gone.
		return fault.Retry
	case apierrors.IsNotFound(err):
		return fault.Missing
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return fault.Conflict
	case apierrors.IsTooManyRequests(err):
		return fault.Throttled
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fault.Denied
	case tooManyBudgets(err), refused(err):
		return fault.Invalid
	}
	// Timeouts and inner errors come from anywhere on the way, after the
	// object was stored as well as before.
	return what.silence()
}

// refused reports whether the server understood and does not want it.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsNotAcceptable(err) ||
		apierrors.IsUnsupportedMediaType(err) || apierrors.IsGone(err)
}

// tooManyBudgets knows the eviction that can never succeed, which the server
// calls an inner error.
func tooManyBudgets(err error) bool {
	return strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}

// notServed tells a kind that the server does not have from an object that it
// does not have: the one is a path that nobody answers.
func notServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unanswered is the error of a request that got no answer.
func (what call) unanswered(err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fault.E(what.String(), fault.Retry, err).WithHint("check that the API server can be reached from here")
	}
	if errors.Is(err, context.Canceled) && !what.writes() {
		return fault.E(what.String(), fault.Retry, err)
	}
	return fault.E(what.String(), what.silence(), err)
}

// silence is what no answer, or none that says anything, means.
func (what call) silence() fault.Kind {
	if what.writes() {
		return fault.Unknown
	}
	return fault.Retry
}
