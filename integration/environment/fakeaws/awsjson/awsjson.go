// Package awsjson implements the server side of AWS's JSON protocols: X-Amz-Target names
// the operation, input and output are JSON objects, and an error is an object with a
// __type. It also writes the answers of AWS's REST protocol.
package awsjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Error is an AWS error response.
type Error struct {
	// Shape is the error's name in the service's model.
	Shape string
	// Code is the error's code in the older query protocol, for services whose clients
	// still read it; "" means Shape.
	Code    string
	Message string
	// Status is the HTTP status; 0 means 400.
	Status int
}

func (e *Error) Error() string { return e.Shape + ": " + e.Message }

// Errorf returns a client error.
func Errorf(shape, format string, args ...any) *Error {
	return &Error{Shape: shape, Message: fmt.Sprintf(format, args...)}
}

// Refusal returns AWS's error for an error of the model.
func Refusal(err error) *Error {
	code, message, status := query.Refusal(err)
	return &Error{Shape: code, Message: message, Status: status}
}

// Operation decodes its input from a request and returns its output.
type Operation func(r *http.Request, decode func(into any) error) (any, error)

// Op returns an operation for a function with a typed input.
func Op[In any](do func(r *http.Request, in In) (any, error)) Operation {
	return func(r *http.Request, decode func(into any) error) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, &Error{Shape: "SerializationException", Message: err.Error()}
		}
		return do(r, in)
	}
}

// API is a service with this protocol.
type API struct {
	// Target is the prefix before the dot in X-Amz-Target.
	Target string
	// Version is the protocol's version: "1.0" or "1.1".
	Version    string
	Operations map[string]Operation
}

// Match reports whether the request is for this API.
func (a *API) Match(r *http.Request, _ []byte) bool {
	target, _, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return ok && target == a.Target
}

// ServeHTTP runs the operation. For fault.Unknown it closes the connection without an
// answer, like a lost response.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	operation, ok := a.Operations[name]
	if !ok {
		a.refuse(w, &Error{Shape: "UnknownOperationException", Message: "the fake does not support " + name})
		return
	}
	out, err := operation(r, json.NewDecoder(r.Body).Decode)
	switch {
	case fault.Is(err, fault.Unknown):
		panic(http.ErrAbortHandler)
	case err != nil:
		a.refuse(w, err)
		return
	}
	if out == nil {
		out = struct{}{}
	}
	a.write(w, http.StatusOK, out)
}

// refuse responds with an error. An error that is not an Error is a server error.
func (a *API) refuse(w http.ResponseWriter, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Shape: "ServiceUnavailable", Message: err.Error(), Status: http.StatusServiceUnavailable}
	}
	if e.Status == 0 {
		e.Status = http.StatusBadRequest
	}
	if e.Code != "" {
		w.Header().Set("X-Amzn-Query-Error", e.Code+";Sender")
	}
	a.write(w, e.Status, map[string]string{"__type": "com.amazonaws#" + e.Shape, "message": e.Message})
}

func (a *API) write(w http.ResponseWriter, status int, out any) {
	write(w, "application/x-amz-json-"+a.Version, status, out)
}

func write(w http.ResponseWriter, contentType string, status int, out any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// Encoding fails only if the client has disconnected.
	_ = json.NewEncoder(w).Encode(out)
}

// WriteREST writes the answer of a service with AWS's REST protocol.
func WriteREST(w http.ResponseWriter, out any) { write(w, "application/json", http.StatusOK, out) }

// RefuseREST writes an error of a service with AWS's REST protocol.
func RefuseREST(w http.ResponseWriter, e *Error) {
	w.Header().Set("X-Amzn-Errortype", e.Shape)
	write(w, "application/json", e.Status, map[string]string{"message": e.Message})
}
