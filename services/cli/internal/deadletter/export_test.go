package deadletter

import "github.com/joist-autoscaler/joist/shared/event"

// HasCheck reports whether the body of a type is checked.
func HasCheck(t event.Type) bool { return bodyChecks[t] != nil }
