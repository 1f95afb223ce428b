// Package v1 has the kubelet's types for logging and tracing, so that the settings of an EC2NodeClass are decoded as
// the kubelet decodes them. Their package in Kubernetes links metrics, a command line and a template engine.
package v1

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TimeOrMetaDuration is a duration as text, or as a number of nanoseconds.
type TimeOrMetaDuration struct {
	Duration metav1.Duration
}

// UnmarshalJSON reads both forms. Its errors are those of Kubernetes.
func (t *TimeOrMetaDuration) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &t.Duration)
	}
	if err := json.Unmarshal(text, &t.Duration.Duration); err != nil {
		return fmt.Errorf("invalid duration %q: %w", string(text), err)
	}
	return nil
}
