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
	verbPatch  = "patch"
	verbDelete = "delete"

	statusSubresource   = "status"
	evictionSubresource = "eviction"
)

// call is one request to the API server.
type call struct {
	verb, subresource string
	kind              cluster.Kind
	key               cluster.Key
	// fields is a field selector; empty for all.
	fields string
}

// resourceName is the resource as RBAC rules spell it, such as "pods/eviction".
func (what call) resourceName() string {
	if what.subresource == "" {
		return what.kind.Resource
	}
	return what.kind.Resource + "/" + what.subresource
}

func (what call) String() string {
	return strings.TrimSpace(what.verb + " " + what.resourceName() + " " + what.key.String())
}

// requireName refuses a call without a name: its address is that of a whole collection, which a deletion would delete.
func (what call) requireName() error {
	if what.key.Name == "" {
		return fault.F(what.String(), fault.Invalid, "the object has no name")
	}
	return nil
}

func (what call) isWrite() bool {
	return what.verb == verbCreate || what.verb == verbUpdate || what.verb == verbPatch || what.verb == verbDelete
}

func (what call) httpMethod() string {
	switch what.verb {
	case verbCreate:
		return http.MethodPost
	case verbUpdate:
		return http.MethodPut
	case verbPatch:
		return http.MethodPatch
	case verbDelete:
		return http.MethodDelete
	default:
		return http.MethodGet
	}
}

// classifyError gives an error of client-go its kind of fault and a hint.
func (what call) classifyError(err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return what.connectionFault(err)
	}
	told := fault.E(what.String(), what.faultKind(err), err)
	switch {
	case apierrors.IsUnauthorized(err):
		return told.WithHint("renew the credentials: the API server does not accept them")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "):
		return told.WithHint("grant the verb %q on the resource %q of the API group %q to this service account",
			what.verb, what.resourceName(), what.kind.Group)
	case isKindMissing(err) && isDeviceKind(what.kind):
		return told.WithHint("upgrade the cluster to Kubernetes 1.34, which serves %s, or set IGNORE_DRA_REQUESTS=true", what.kind.APIVersion())
	case isKindMissing(err):
		return told.WithHint("install the CustomResourceDefinition of %s %s", what.kind.APIVersion(), what.kind.Kind)
	case told.Kind == fault.Invalid && hasSeveralBudgets(err):
		return told.WithHint("change the budgets' selectors so that one PodDisruptionBudget covers each pod")
	}
	return told
}

// faultKind returns the kind of fault of an answer.
func (what call) faultKind(err error) fault.Kind {
	switch {
	case isKindMissing(err):
		// The object may exist, so this is not fault.Missing.
		return fault.Retry
	case apierrors.IsNotFound(err):
		return fault.Missing
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return fault.Conflict
	case apierrors.IsTooManyRequests(err):
		return fault.Throttled
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fault.Denied
	case hasSeveralBudgets(err), isRejected(err):
		return fault.Invalid
	}
	// A timeout or an internal error may come before or after the object was stored.
	return what.faultWithoutAnswer()
}

// isRejected reports whether the server rejected the request, so that a retry is useless.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsNotAcceptable(err) ||
		apierrors.IsUnsupportedMediaType(err) || apierrors.IsGone(err)
}

// hasSeveralBudgets reports whether an eviction failed because several
// PodDisruptionBudgets cover the pod. The server answers with an internal error.
func hasSeveralBudgets(err error) bool {
	return strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}

// isKindMissing reports whether the server does not serve the kind, as opposed to an
// object that does not exist.
func isKindMissing(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// connectionFault returns the error of a request without an answer.
func (what call) connectionFault(err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fault.E(what.String(), fault.Retry, err).WithHint("check that the API server can be reached from here")
	}
	if errors.Is(err, context.Canceled) && !what.isWrite() {
		return fault.E(what.String(), fault.Retry, err)
	}
	return fault.E(what.String(), what.faultWithoutAnswer(), err)
}

// faultWithoutAnswer returns fault.Unknown for a write, which may have happened, and
// fault.Retry for a read.
func (what call) faultWithoutAnswer() fault.Kind {
	if what.isWrite() {
		return fault.Unknown
	}
	return fault.Retry
}
