package apiproxy

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// status is the answer of a fault.
type status struct {
	Code    int32
	Reason  metav1.StatusReason
	Message string
}

// The answers, with the reasons and messages of a real API server (k8s.io/apimachinery/pkg/api/errors).
var (
	answers = map[WireFault]status{
		ExpireWatch:   {http.StatusGone, metav1.StatusReasonExpired, "too old resource version: 1 (2)"},
		ExpirePage:    {http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old to display a consistent list result."},
		RefuseStream:  {http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ListOptions.meta.k8s.io is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"},
		Conflict:      {http.StatusConflict, metav1.StatusReasonConflict, "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"},
		TooMany:       {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later"},
		InternalError: {http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: leader changed"},
		Unavailable:   {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down"},
	}
	timedOut      = status{http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout"}
	alreadyExists = status{http.StatusConflict, metav1.StatusReasonAlreadyExists, "the object already exists"}
	notFound      = status{http.StatusNotFound, metav1.StatusReasonNotFound, "the object was not found"}
)

func (s status) object() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: s.Code, Reason: s.Reason, Message: s.Message,
	}
}

func (s status) encode() []byte {
	body, err := json.Marshal(s.object())
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return body
}

func writeStatus(w http.ResponseWriter, s status) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(s.encode()) // the client may have gone
}

// writeErrorEvent answers a watch with one event of an error. Every client accepts JSON.
func writeErrorEvent(w http.ResponseWriter, s status) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"type": watch.Error, "object": s.object()}) // the client may have gone
}
