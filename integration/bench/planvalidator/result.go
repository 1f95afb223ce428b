package planvalidator

import (
	"encoding/json"
	"fmt"
)

// Result is a plan.
type Result struct {
	Planner  string `json:"planner"`
	Scenario string `json:"scenario"`
	// Pods is how many were to be placed.
	Pods     int       `json:"pods"`
	NewNodes []NewNode `json:"newNodes"`
	// ExistingNodes counts the pods that go to nodes which exist, and
	// ExistingPods names them.
	ExistingNodes map[string]int      `json:"existingNodes,omitempty"`
	ExistingPods  map[string][]string `json:"existingPods,omitempty"`
	// Unscheduled are pods without a place, and why.
	Unscheduled map[string]string `json:"unscheduled,omitempty"`
	Summary     Summary           `json:"summary"`
}

// NewNode is a node to launch.
type NewNode struct {
	// Name is what a consolidation calls the node from then on.
	Name         string `json:"name,omitempty"`
	NodePool     string `json:"nodePool"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// Price is in US dollars an hour.
	Price float64 `json:"price"`
	// Options is how many types the launch may choose from, and OptionTypes,
	// which a planner may leave out, are their names.
	Options     int      `json:"options"`
	OptionTypes []string `json:"optionTypes,omitempty"`
	// Labels are those that the plan decided on where the pool left a choice.
	Labels map[string]string `json:"labels,omitempty"`
	Pods   []string          `json:"pods"`
}

// Summary is what the plan says of itself.
type Summary struct {
	NewNodes       int     `json:"newNodes"`
	Scheduled      int     `json:"scheduled"`
	Unscheduled    int     `json:"unscheduled"`
	DollarsPerHour float64 `json:"dollarsPerHour"`
}

// ParseResult decodes a plan.
func ParseResult(text []byte) (*Result, error) {
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("decoding the plan: %w", err)
	}
	return r, nil
}
