package scenario

// Consolidation is the output for consolidating a scenario's nodes. Prices are in US dollars an hour.
type Consolidation struct {
	// Planner is the name and version of the planner.
	Planner    string  `json:"planner"`
	Scenario   string  `json:"scenario"`
	Nodes      int     `json:"nodes"`
	Pods       int     `json:"pods"`
	CostBefore float64 `json:"costBefore"`
	CostAfter  float64 `json:"costAfter"`
	NodesAfter int     `json:"nodesAfter"`
	// PodsMoved is the sum over Rounds: a pod that moves twice counts twice.
	PodsMoved int `json:"podsMoved"`
	// Complete is true if no further command was found.
	Complete   bool        `json:"complete"`
	Rounds     []Round     `json:"rounds"`
	FinalNodes []FinalNode `json:"finalNodes"`
	// WallS is elapsed seconds and UserS CPU seconds of the whole process, without setup.
	WallS     float64 `json:"wallS"`
	UserS     float64 `json:"userS"`
	PeakRSSMB float64 `json:"peakRSSMB"`
}

// Round is one executed command.
type Round struct {
	Method string `json:"method"`
	// Candidates is the number of nodes considered.
	Candidates int `json:"candidates"`
	// Removed are the names of removed nodes, and Replacements are the new nodes.
	Removed      []string  `json:"removed"`
	Replacements []NewNode `json:"replacements"`
	// Moved lists the pods moved to existing nodes, by node name.
	Moved map[string][]string `json:"moved"`
	// PodsMoved counts the pods of the removed nodes.
	PodsMoved int `json:"podsMoved"`
	// CostAfter is the cost of all nodes in US dollars an hour.
	CostAfter float64 `json:"costAfter"`
	// UserS is the CPU time of the pass that found the command; it is set on the first command of the
	// pass.
	UserS float64 `json:"userS"`
}

// FinalNode is a remaining node, with its pods as namespace/name.
type FinalNode struct {
	Name         string   `json:"name"`
	NodePool     string   `json:"nodePool"`
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Pods         []string `json:"pods"`
}
