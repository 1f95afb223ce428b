package telemetry

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/aws/awscalls"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// AWSHooks count the calls to AWS.
func (t *Telemetry) AWSHooks() awscalls.CallHooks {
	return awscalls.CallHooks{
		Now: time.Now,
		OnRequest: func(c awscalls.MeasuredCall) {
			t.RecordMetric(metric.AWSCalls, 1, c.Service, c.Action, c.Code)
			t.RecordMetric(metric.AWSCallTime, c.Duration.Seconds(), c.Service, c.Action, c.Code)
			t.RecordMetric(metric.AWSRetries, float64(max(c.Attempts-1, 0)), c.Service, c.Action, c.Code)
		},
		OnAttempt: func(c awscalls.MeasuredCall) {
			t.RecordMetric(metric.AWSAttempts, 1, c.Service, c.Action, c.Code)
			t.RecordMetric(metric.AWSAttemptTime, c.Duration.Seconds(), c.Service, c.Action, c.Code)
			if c.IsThrottled {
				t.RecordMetric(metric.AWSThrottles, 1, c.Service, c.Action)
			}
		},
	}
}

// KubernetesObserver counts calls to the Kubernetes API. It implements kubecluster.Observer, which functions must not
// link.
type KubernetesObserver struct{ Telemetry *Telemetry }

// CountRequest counts a request by its status code and HTTP method.
func (o KubernetesObserver) CountRequest(code, method string) {
	o.Telemetry.RecordMetric(metric.KubernetesCalls, 1, code, method)
}

// RecordDuration records the time of a request.
func (o KubernetesObserver) RecordDuration(verb, group, version, resource, subresource string, took time.Duration) {
	o.Telemetry.RecordMetric(metric.KubernetesCallTime, took.Seconds(), verb, group, version, resource, subresource)
}

// RecordLimiterWait records how long a request waited in the client's rate limiter.
func (o KubernetesObserver) RecordLimiterWait(method, host string, waited time.Duration) {
	o.Telemetry.RecordMetric(metric.KubernetesLimiterWait, waited.Seconds(), method, host)
}

// CountWatch counts the start of a watch.
func (o KubernetesObserver) CountWatch(resource, result string) {
	o.Telemetry.RecordMetric(metric.WatchesStarted, 1, resource, result)
}
