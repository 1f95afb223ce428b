// Package lambdaruntime implements the Lambda Runtime API and the event source mapping of
// a queue, so that an unmodified aws-lambda-go binary runs as a function on this machine.
//
// A function is identified by a name. Its process polls for invocations at
// AWS_LAMBDA_RUNTIME_API=Runtime.Address(host, name). Any number of processes may serve
// one name, as with Lambda's concurrency.
package lambdaruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const version = "/2018-06-01/runtime/"

// Runtime is the API for all functions.
type Runtime struct {
	mu        sync.Mutex
	serial    int
	functions map[string]chan *invocation
	pending   map[string]*invocation
	broken    map[string]string
}

// invocation is one event in flight.
type invocation struct {
	id       string
	function string
	// taken is true once a process of the function has the event.
	taken    bool
	payload  []byte
	deadline time.Time
	answer   chan answer
}

type answer struct {
	payload []byte
	err     error
}

// New returns a runtime without functions; a function is created when its name is first
// used.
func New() *Runtime {
	return &Runtime{functions: map[string]chan *invocation{}, pending: map[string]*invocation{}, broken: map[string]string{}}
}

// Address returns the value of AWS_LAMBDA_RUNTIME_API for a function's process.
func Address(host, function string) string { return host + "/functions/" + function }

// Invoke sends an event to the function and waits up to timeout for the response. It
// returns errors that the function reported.
func (l *Runtime) Invoke(ctx context.Context, function string, payload []byte, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	l.mu.Lock()
	l.serial++
	call := &invocation{id: fmt.Sprintf("invocation-%d", l.serial), function: function, payload: payload, deadline: deadline, answer: make(chan answer, 1)}
	l.pending[call.id] = call
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pending, call.id)
	}()
	select {
	case l.function(function) <- call:
	case <-ctx.Done():
		return nil, fmt.Errorf("invoking %s: no process received the event: %w", function, ctx.Err())
	}
	select {
	case a := <-call.answer:
		return a.payload, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("invoking %s: the process did not answer: %w", function, ctx.Err())
	}
}

// InitError returns the initialization error that the function's process reported, or "".
func (l *Runtime) InitError(function string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken[function]
}

func (l *Runtime) function(name string) chan *invocation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.functions[name] == nil {
		l.functions[name] = make(chan *invocation)
	}
	return l.functions[name]
}

// Match recognizes the API by its path.
func (l *Runtime) Match(r *http.Request, _ []byte) bool {
	return strings.HasPrefix(r.URL.Path, "/functions/") && strings.Contains(r.URL.Path, version)
}

// ServeHTTP serves the routes of one function.
func (l *Runtime) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	function, route, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/functions/"), version)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	parts := strings.Split(route, "/")
	switch {
	case r.Method == http.MethodGet && route == "invocation/next":
		l.next(w, r, function)
	case r.Method == http.MethodPost && route == "init/error":
		l.mu.Lock()
		l.broken[function] = string(body)
		l.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPost && len(parts) == 3 && parts[0] == "invocation" && parts[2] == "response":
		l.settle(w, parts[1], answer{payload: body})
	case r.Method == http.MethodPost && len(parts) == 3 && parts[0] == "invocation" && parts[2] == "error":
		l.settle(w, parts[1], answer{err: failed(function, body)})
	default:
		http.NotFound(w, r)
	}
}

// next sends the process its next event, and blocks until there is one.
func (l *Runtime) next(w http.ResponseWriter, r *http.Request, function string) {
	select {
	case <-r.Context().Done():
	case call := <-l.function(function):
		l.mu.Lock()
		call.taken = true
		l.mu.Unlock()
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", call.id)
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(call.deadline.UnixMilli(), 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:"+function)
		w.Header().Set("Content-Type", "application/json")
		// If the process has exited, ExitProcess fails the invocation.
		_, _ = w.Write(call.payload)
	}
}

// ExitProcess fails the invocations that the function's processes have received but not
// answered, as Lambda does when the process exits. Call it when the function's only
// process has ended.
func (l *Runtime) ExitProcess(function string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, call := range l.pending {
		if call.function == function && call.taken {
			delete(l.pending, id)
			call.answer <- answer{err: fmt.Errorf("function %s failed: Runtime.ExitError: its process exited", function)}
		}
	}
}

// settle completes an invocation. It rejects one that has timed out, as Lambda does.
func (l *Runtime) settle(w http.ResponseWriter, id string, a answer) {
	l.mu.Lock()
	call := l.pending[id]
	delete(l.pending, id)
	l.mu.Unlock()
	if call == nil {
		http.Error(w, `{"errorType":"InvalidRequestID"}`, http.StatusBadRequest)
		return
	}
	call.answer <- a
	w.WriteHeader(http.StatusAccepted)
}

// failed returns the error that a function reported.
func failed(function string, body []byte) error {
	var report struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(body, &report); err != nil {
		return fmt.Errorf("function %s failed: %s", function, body)
	}
	return fmt.Errorf("function %s failed: %s: %s", function, report.ErrorType, report.ErrorMessage)
}
