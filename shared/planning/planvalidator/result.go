package planvalidator

import (
	"encoding/json"
	"fmt"
)

// Result is a plan.
type Result struct {
	Planner  string `json:"planner"`
	Scenario string `json:"scenario"`
	// Pods is the number of pods to place.
	Pods     int       `json:"pods"`
	NewNodes []NewNode `json:"newNodes"`
	// ExistingNodes counts the pods on existing nodes, and ExistingPods names them.
	ExistingNodes map[string]int      `json:"existingNodes,omitempty"`
	ExistingPods  map[string][]string `json:"existingPods,omitempty"`
	// Unscheduled are pods without a node, and the reason.
	Unscheduled map[string]string `json:"unscheduled,omitempty"`
	Summary     Summary           `json:"summary"`
}

// NewNode is a node to launch.
type NewNode struct {
	// Name is the node's name in later rounds of a consolidation.
	Name         string `json:"name,omitempty"`
	NodePool     string `json:"nodePool"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// Price is in US dollars per hour.
	Price float64 `json:"price"`
	// Options is how many types the launch may choose from, and OptionTypes their names, which a planner may omit.
	Options     int      `json:"options"`
	OptionTypes []string `json:"optionTypes,omitempty"`
	// Labels are the labels that the plan chose.
	Labels map[string]string `json:"labels,omitempty"`
	// Requirements are those of the NodeClaim, and Offerings are all offerings that the launch may choose from. A
	// planner may omit both.
	Requirements []Requirement    `json:"requirements,omitempty"`
	Offerings    []LaunchOffering `json:"offerings,omitempty"`
	Pods         []string         `json:"pods"`
}

// LaunchOffering is an offering of an instance type.
type LaunchOffering struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
}

// Summary is the plan's own summary.
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
