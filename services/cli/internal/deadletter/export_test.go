package deadletter

import "github.com/joist-autoscaler/joist/shared/event"

// Checked reports whether the body of a type is checked.
func Checked(t event.Type) bool { return checks[t] != nil }
