package kubecluster

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/metrics"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Observer receives measurements of the calls to the API server, from several goroutines.
type Observer interface {
	CountRequest(code, method string)
	RecordDuration(verb, group, version, resource, subresource string, took time.Duration)
	RecordLimiterWait(method, host string, waited time.Duration)
	// CountWatch counts the start of a watch, whose result is ok or the kind of error.
	CountWatch(resource, result string)
}

// observer is the observer of the process: client-go has one for all clients.
var observer atomic.Pointer[Observer]

// ObserveCalls sets the observer of all clients of the process.
func ObserveCalls(to Observer) {
	observer.Store(&to)
	metrics.Register(metrics.RegisterOpts{RequestResult: resultMetric{}, RequestLatency: durationMetric{}, RateLimiterLatency: waitMetric{}})
}

type (
	resultMetric   struct{}
	durationMetric struct{}
	waitMetric     struct{}
)

// Increment implements metrics.ResultMetric.
func (resultMetric) Increment(_ context.Context, code, method, _ string) {
	(*observer.Load()).CountRequest(code, method)
}

// Observe implements metrics.LatencyMetric.
func (waitMetric) Observe(_ context.Context, method string, u url.URL, waited time.Duration) {
	(*observer.Load()).RecordLimiterWait(method, u.Host, waited)
}

// Observe implements metrics.LatencyMetric.
func (durationMetric) Observe(_ context.Context, method string, u url.URL, took time.Duration) {
	if r, ok := parseResource(u.Path); ok {
		(*observer.Load()).RecordDuration(r.verb(method), r.group, r.version, r.resource, r.subresource, took)
	}
}

// resourcePath is the path of a request, without the names in it.
type resourcePath struct {
	group, version, resource, subresource string
	hasName                               bool
}

// parseResource parses /api/v1/… and /apis/<group>/<version>/…, and no other paths.
func parseResource(path string) (r resourcePath, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		r.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		r.group, r.version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, false
	}
	if parts[0] == cluster.Namespaces.Resource && len(parts) > 2 {
		parts = parts[2:]
	}
	r.resource, r.hasName = parts[0], len(parts) > 1
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	return r, true
}

// verb returns Kubernetes' verb in capitals, as Karpenter's metrics have it.
func (r resourcePath) verb(method string) string {
	switch method {
	case "GET":
		if !r.hasName {
			return "LIST"
		}
	case "POST":
		return "CREATE"
	case "PUT":
		return "UPDATE"
	}
	return method
}

// countWatch counts the start of a watch, if there is an observer.
func countWatch(kind cluster.Kind, err error) {
	to := observer.Load()
	if to == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = string(fault.KindOf(call{verb: verbWatch, kind: kind}.classifyError(err)))
	}
	(*to).CountWatch(kind.Resource, result)
}
