package deadletter

import (
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/event"
)

// describeForgery returns why the rules of the bus would not deliver the message, or "" if
// they would. A message that is sent to a queue bypasses these rules, so a replay makes the
// same checks: the entry's source and detail-type, which IAM checked, equal those inside its
// detail, and the source is a producer of the type. Messages of other senders than Joist are
// not checked.
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
	case !spec.AllowsSource(e.Source):
		return fmt.Sprintf("%q may not send %s", e.Source, e.Type)
	}
	return ""
}
