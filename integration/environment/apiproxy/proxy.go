package apiproxy

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// maxDelay is the longest delay of the fault Delay.
const maxDelay = time.Second

// Proxy forwards to one API server. Without Shares it changes nothing.
type Proxy struct {
	// Host is the address, such as https://127.0.0.1:4567, and CAData the certificate to trust, in PEM.
	Host   string
	CAData []byte

	server  *httptest.Server
	forward *httputil.ReverseProxy

	mu          sync.Mutex
	random      *rand.Rand
	shares      Shares
	counts      FaultCounts
	connections map[net.Conn]bool
}

// Start starts a proxy to the API server of a configuration, which Close ends. The clients' own credentials are forwarded. All draws are
// from the seed.
func Start(config *rest.Config, seed uint64) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	p := &Proxy{random: rand.New(rand.NewPCG(seed, 21)), counts: FaultCounts{}, connections: map[net.Conn]bool{}} //nolint:gosec // the faults of a seed repeat
	silent := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.changeAnswer,
		// The API server restarts: the client sees an end without an answer, as it would without the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     silent,
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = silent
	p.server.Config.ConnState = p.recordConnection
	p.server.StartTLS()
	p.Host = p.server.URL
	p.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return p, nil
}

// Close closes all connections and ends the proxy.
func (p *Proxy) Close() {
	p.Disconnect()
	p.server.CloseClientConnections()
	p.server.Close()
}

// SetShares replaces the faults for the following requests.
func (p *Proxy) SetShares(shares Shares) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares = maps.Clone(shares)
}

// Counts returns how often each fault happened so far.
func (p *Proxy) Counts() FaultCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Disconnect closes the connections of all clients without notice, with their watches.
func (p *Proxy) Disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[Disconnect] += len(p.connections)
	for connection := range p.connections {
		_ = connection.Close()
	}
}

func (p *Proxy) recordConnection(connection net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(p.connections, connection)
	} else {
		p.connections[connection] = true
	}
}

// draw reports whether the request gets the fault.
func (p *Proxy) draw(f WireFault, r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shares[f] == 0 || !f.applies(r) || p.random.Float64() >= p.shares[f] {
		return false
	}
	p.counts[f]++
	return true
}

// drawNumber returns a number from 0 to n-1.
func (p *Proxy) drawNumber(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

// ServeHTTP answers with a fault or forwards the request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, f := range before {
		if p.draw(f, r) && p.fail(f, w, r) {
			return
		}
	}
	p.forward.ServeHTTP(w, r)
}

// fail carries out a fault, and reports whether it has answered the request.
func (p *Proxy) fail(f WireFault, w http.ResponseWriter, r *http.Request) bool {
	switch f {
	case Delay:
		select {
		case <-time.After(time.Duration(p.drawNumber(int(maxDelay)))):
		case <-r.Context().Done():
		}
		return false
	case SmallPages:
		query := r.URL.Query()
		query.Set("limit", "3")
		r.URL.RawQuery = query.Encode()
		return false
	case Reset:
		panic(http.ErrAbortHandler)
	case TooMany:
		w.Header().Set("Retry-After", "1")
	}
	if f == ExpireWatch && p.drawNumber(2) == 0 {
		writeErrorEvent(w, answers[f])
		return true
	}
	writeStatus(w, answers[f])
	return true
}

// changeAnswer carries out the faults of an answer.
func (p *Proxy) changeAnswer(answer *http.Response) error {
	r := answer.Request
	if answer.StatusCode >= http.StatusBadRequest {
		return nil
	}
	if p.draw(AppliedError, r) {
		return p.hideSuccess(answer)
	}
	if CutWatch.applies(r) {
		if p.draw(DropBookmarks, r) {
			answer.Body = newBookmarkFilter(answer)
		}
		if p.draw(CutWatch, r) {
			// Initial events of a small cluster are some ten kilobytes, and other events a few.
			answer.Body = &cutBody{ReadCloser: answer.Body, left: p.drawNumber(maxCut)}
		}
	}
	return nil
}

const maxCut = 20_000

// hideSuccess replaces the answer of a write that was stored by an error.
func (p *Proxy) hideSuccess(answer *http.Response) error {
	_ = answer.Body.Close()
	choices := []status{answers[InternalError], timedOut, {}}
	switch answer.Request.Method {
	case http.MethodPost:
		if !isEviction(answer.Request) {
			choices = append(choices, alreadyExists)
		}
	case http.MethodPut:
		choices = append(choices, answers[Conflict])
	case http.MethodDelete:
		choices = append(choices, notFound)
	}
	s := choices[p.drawNumber(len(choices))]
	if s.Code == 0 {
		return errors.New("no answer") // ErrorHandler ends the request
	}
	body := s.encode()
	answer.StatusCode, answer.Status = int(s.Code), http.StatusText(int(s.Code))
	answer.Header = http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	answer.ContentLength, answer.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return nil
}
