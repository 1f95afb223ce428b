package scenario

// Consolidation is what became of a scenario's nodes, as it is written down.
// Prices are in US dollars an hour.
type Consolidation struct {
	// Planner is who decided, and its version.
	Planner    string  `json:"planner"`
	Scenario   string  `json:"scenario"`
	Nodes      int     `json:"nodes"`
	Pods       int     `json:"pods"`
	CostBefore float64 `json:"costBefore"`
	CostAfter  float64 `json:"costAfter"`
	NodesAfter int     `json:"nodesAfter"`
	// PodsMoved is the sum over Rounds: a pod that moves twice counts twice.
	PodsMoved int `json:"podsMoved"`
	// Complete says that nothing is left to do.
	Complete   bool        `json:"complete"`
	Rounds     []Round     `json:"rounds"`
	FinalNodes []FinalNode `json:"finalNodes"`
	// WallS is seconds on the clock and UserS CPU seconds of the whole process, of
	// deciding alone.
	WallS     float64 `json:"wallS"`
	UserS     float64 `json:"userS"`
	PeakRSSMB float64 `json:"peakRSSMB"`
}

// Round is one command, carried out.
type Round struct {
	Method string `json:"method"`
	// Candidates is how many nodes were looked at.
	Candidates int `json:"candidates"`
	// Removed names the nodes that went, and Replacements are those that came.
	Removed      []string  `json:"removed"`
	Replacements []NewNode `json:"replacements"`
	// Moved names the pods that went to nodes which existed, by the node's name.
	Moved map[string][]string `json:"moved"`
	// PodsMoved counts the pods of the nodes that went.
	PodsMoved int `json:"podsMoved"`
	// CostAfter is that of all nodes in US dollars an hour.
	CostAfter float64 `json:"costAfter"`
	// UserS is what the pass took that found the command, on the pass's first one.
	UserS float64 `json:"userS"`
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
