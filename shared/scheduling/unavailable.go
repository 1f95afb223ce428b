package scheduling

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The ConfigMap in Joist's namespace in which lifecycle remembers unavailable
// offerings, and its one entry.
const (
	UnavailableName = "joist-unavailable"
	UnavailableKey  = "offerings.json"
)

// ReadUnavailable reads the ConfigMap. One that is broken reads as empty: to
// ask for an offering once too often costs a refusal, and to fail would cost
// every plan.
func ReadUnavailable(object *corev1.ConfigMap) []Unavailable {
	var list []Unavailable
	if object == nil || json.Unmarshal([]byte(object.Data[UnavailableKey]), &list) != nil {
		return nil
	}
	return list
}

// Current keeps what is still unavailable at now.
func Current(list []Unavailable, now time.Time) []Unavailable {
	var out []Unavailable
	for _, u := range list {
		if u.Until.After(now) {
			out = append(out, u)
		}
	}
	return out
}
