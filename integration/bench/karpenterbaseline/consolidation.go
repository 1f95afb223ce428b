package karpenterbaseline

import "slices"

// Consolidation is the result of a consolidation in the benchmark's format. Prices are in
// US dollars per hour.
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
	// WallS is the wall time in seconds, and UserS the CPU seconds of the whole process,
	// both for the decisions only.
	WallS     float64 `json:"wallS"`
	UserS     float64 `json:"userS"`
	PeakRSSMB float64 `json:"peakRSSMB"`
}

// Round is one applied command.
type Round struct {
	Method       string    `json:"method"`
	Candidates   int       `json:"candidates"`
	Removed      []string  `json:"removed"`
	Replacements []NewNode `json:"replacements"`
	// Moved has the pods that moved to existing nodes.
	Moved     map[string][]string `json:"moved"`
	PodsMoved int                 `json:"podsMoved"`
	CostAfter float64             `json:"costAfter"`
	UserS     float64             `json:"userS"`
}

// FinalNode is a remaining node, with its pods by namespace/name.
type FinalNode struct {
	Name         string   `json:"name"`
	NodePool     string   `json:"nodePool"`
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Pods         []string `json:"pods"`
}

func (f *fleet) before() *Consolidation {
	return &Consolidation{Planner: planner, Scenario: f.scenario.Name, Nodes: len(f.scenario.Nodes), CostBefore: f.cost(), Rounds: []Round{}}
}

func (f *fleet) after() *Consolidation {
	f.out.CostAfter, f.out.NodesAfter = f.cost(), len(f.scenario.Nodes)
	for _, n := range f.scenario.Nodes {
		one := FinalNode{Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, Pods: []string{}}
		for _, pod := range n.Pods {
			if !ofDaemon(pod) {
				one.Pods = append(one.Pods, pod.Namespace+"/"+pod.Name)
			}
		}
		slices.Sort(one.Pods)
		f.out.Pods += len(one.Pods)
		f.out.FinalNodes = append(f.out.FinalNodes, one)
	}
	return f.out
}
