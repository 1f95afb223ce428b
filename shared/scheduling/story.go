package scheduling

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
)

// StoryAnnotation is on a claim the W3C context of the message that the claim was written
// for last: what is seen of it later belongs to that story, whoever sees it. It is written
// with what is written anyway, and means nothing but to who reads traces.
const StoryAnnotation = "joist.sh/traceparent"

// StoryOf is the cause of what is said of an object, as its annotation has it; nil where
// it has none.
func StoryOf(o metav1.Object) *event.Envelope {
	traceparent := o.GetAnnotations()[StoryAnnotation]
	story, ok := event.StoryOf(traceparent)
	if !ok {
		return nil
	}
	return &event.Envelope{Correlation: story, Traceparent: traceparent}
}
