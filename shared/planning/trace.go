package planning

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
)

// TraceAnnotation is the W3C trace context, on a NodeClaim, of the message for which the
// NodeClaim was last written. Later spans about it belong to that trace. It is written with
// other changes, never alone, and only traces use it.
const TraceAnnotation = "joist.sh/traceparent"

// ReadTrace returns the trace context in the object's annotation; nil if it has none.
func ReadTrace(o metav1.Object) *event.Envelope {
	traceparent := o.GetAnnotations()[TraceAnnotation]
	story, ok := event.TraceIDOf(traceparent)
	if !ok {
		return nil
	}
	return &event.Envelope{Correlation: story, Traceparent: traceparent}
}
