package planvalidator

import (
	"encoding/json"
	"fmt"
)

// Consolidation is what a planner says became of a scenario's nodes. Prices are in
// US dollars an hour.
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

// Round is one command, carried out: nodes go, nodes come, pods move.
type Round struct {
	Method       string    `json:"method"`
	Candidates   int       `json:"candidates"`
	Removed      []string  `json:"removed"`
	Replacements []NewNode `json:"replacements"`
	// Moved names the pods that went to nodes which existed.
	Moved     map[string][]string `json:"moved"`
	PodsMoved int                 `json:"podsMoved"`
	CostAfter float64             `json:"costAfter"`
	UserS     float64             `json:"userS"`
}

// FinalNode is a node that is there in the end, with its pods by namespace/name.
type FinalNode struct {
	Name         string   `json:"name"`
	NodePool     string   `json:"nodePool"`
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Pods         []string `json:"pods"`
}

// ParseConsolidation decodes what became of a scenario's nodes.
func ParseConsolidation(text []byte) (*Consolidation, error) {
	c := &Consolidation{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("decoding the consolidation: %w", err)
	}
	return c, nil
}

// RepackBound is a price in US dollars an hour below which no nodes can hold the
// pods that run in the scenario, however they are moved.
func RepackBound(s *Scenario) (float64, error) {
	out := s.Unbound()
	out.Pods = nil
	for _, n := range s.Nodes {
		for i := range n.Pods {
			if !ofDaemon(&n.Pods[i]) {
				out.Pods = append(out.Pods, n.Pods[i])
			}
		}
	}
	return Bound(out)
}
