// Package fakeaws is AWS on one loopback port: what Joist's adapters and its
// unmodified binaries call, spoken in AWS's own protocols over the seeded
// models (memqueue, memblob, memcloud). It is a test double: an operation that
// Joist does not call does not exist here.
//
// One server serves every AWS API, because AWS_ENDPOINT_URL names one address.
// A request belongs to the first service that recognizes it; a request that
// none recognizes is answered with 501 and remembered, so that a test can fail
// on it. Credentials are not checked.
package fakeaws

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// MaxRequest is the largest request body in bytes that the server reads.
const MaxRequest = 65 << 20

// Service is one AWS API. Sub-packages have it without importing this package.
type Service interface {
	// Match reports whether the request is for this API. The body was read
	// already, for the query protocol says what it wants only there; ServeHTTP
	// gets it again as r.Body.
	Match(r *http.Request, body []byte) bool
	http.Handler
}

// Mux dispatches to services in order.
type Mux struct {
	services []Service

	mu      sync.Mutex
	strange []string
}

// New joins services into one handler.
func New(services ...Service) *Mux { return &Mux{services: services} }

// ServeHTTP hands the request to the first service that recognizes it.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	for _, service := range m.services {
		if service.Match(r, body) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			service.ServeHTTP(w, r)
			return
		}
	}
	request := fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, r.Header.Get("X-Amz-Target"))
	m.mu.Lock()
	m.strange = append(m.strange, request)
	m.mu.Unlock()
	http.Error(w, "fakeaws serves no such request: "+request, http.StatusNotImplemented)
}

// Strange lists the requests that no service recognized.
func (m *Mux) Strange() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.strange)
}
