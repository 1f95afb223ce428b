package planvalidator

import (
	"encoding/json"
	"fmt"
)

// Consolidation is the result of a consolidation. Prices are in US dollars per hour.
type Consolidation struct {
	Planner    string      `json:"planner"`
	Scenario   string      `json:"scenario"`
	Nodes      int         `json:"nodes"`
	Pods       int         `json:"pods"`
	CostBefore float64     `json:"costBefore"`
	CostAfter  float64     `json:"costAfter"`
	NodesAfter int         `json:"nodesAfter"`
	PodsMoved  int         `json:"podsMoved"`
	Complete   bool        `json:"complete"`
	Rounds     []Round     `json:"rounds"`
	FinalNodes []FinalNode `json:"finalNodes"`
	WallS      float64     `json:"wallS"`
	UserS      float64     `json:"userS"`
	PeakRSSMB  float64     `json:"peakRSSMB"`
}

// Round is one executed command: nodes are removed, nodes are launched, and pods move.
type Round struct {
	Method       string    `json:"method"`
	Candidates   int       `json:"candidates"`
	Removed      []string  `json:"removed"`
	Replacements []NewNode `json:"replacements"`
	// Moved names the pods that moved to existing nodes.
	Moved     map[string][]string `json:"moved"`
	PodsMoved int                 `json:"podsMoved"`
	CostAfter float64             `json:"costAfter"`
	UserS     float64             `json:"userS"`
}

// FinalNode is a node at the end, with its pods as namespace/name.
type FinalNode struct {
	Name         string   `json:"name"`
	NodePool     string   `json:"nodePool"`
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Pods         []string `json:"pods"`
}

// ParseConsolidation decodes the result of a consolidation.
func ParseConsolidation(text []byte) (*Consolidation, error) {
	c := &Consolidation{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("decoding the consolidation: %w", err)
	}
	return c, nil
}

// RepackBound returns a price in US dollars per hour that no set of nodes for the scenario's running pods can be
// below.
func RepackBound(s *Scenario) (float64, error) {
	out := s.Unbound()
	out.Pods = nil
	for _, n := range s.Nodes {
		for i := range n.Pods {
			if !isDaemonPod(&n.Pods[i]) {
				out.Pods = append(out.Pods, n.Pods[i])
			}
		}
	}
	return LowerBound(out)
}
