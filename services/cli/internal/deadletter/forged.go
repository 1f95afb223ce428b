package deadletter

import (
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/event"
)

// describeForgery says why the rules of the bus would not deliver the message, and is empty where
// they would. A message that is sent to a queue goes around those rules, so a replay
// checks the same: the entry's source and detail-type, by which IAM decided, are those
// inside its detail, and the source is a producer of the type. What is no message of
// Joist is not checked here.
func describeForgery(body []byte) string {
	outer, inner := wrappedEvent{}, body
	if json.Unmarshal(body, &outer) == nil && outer.DetailType != "" && len(outer.Detail) > 0 {
		inner = outer.Detail
	}
	e, err := event.Decode(inner)
	if err != nil {
		return ""
	}
	spec, err := e.Type.Spec()
	switch {
	case err != nil:
		return ""
	case outer.DetailType != "" && (outer.DetailType != string(e.Type) || outer.Source != e.Source):
		return fmt.Sprintf("the EventBridge entry is %q from %q, but its detail is %q from %q", outer.DetailType, outer.Source, e.Type, e.Source)
	case !spec.SentBy(e.Source):
		return fmt.Sprintf("%q may not send %s", e.Source, e.Type)
	}
	return ""
}
