// Package fakeaws is a fake AWS on one loopback port. It implements AWS's own protocols
// on the in-memory models (memqueue, memblob, memcloud), for Joist's adapters and its
// unmodified binaries. Operations that Joist does not call are not implemented.
//
// One server serves every AWS API, because AWS_ENDPOINT_URL is one address. The first
// service that recognizes a request serves it. A request that no service recognizes gets
// status 501 and is recorded, so that a test can fail on it. Credentials are not checked.
package fakeaws

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// MaxRequest is the maximum size of a request body in bytes.
const MaxRequest = 65 << 20

// Service is one AWS API. Sub-packages implement it without importing this package.
type Service interface {
	// Match reports whether the request is for this API. The server has already read the
	// body, because the query protocol names its API only there; ServeHTTP gets it again
	// as r.Body.
	Match(r *http.Request, body []byte) bool
	http.Handler
}

// Mux dispatches requests to services, in order.
type Mux struct {
	services []Service

	mu      sync.Mutex
	strange []string
}

// New returns a Mux of the services.
func New(services ...Service) *Mux { return &Mux{services: services} }

// ServeHTTP passes the request to the first service that recognizes it.
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
	http.Error(w, "fakeaws does not support this request: "+request, http.StatusNotImplemented)
}

// listUnrecognized returns the requests that no service recognized.
func (m *Mux) listUnrecognized() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.strange)
}
