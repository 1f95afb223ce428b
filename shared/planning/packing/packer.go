package packing

// Packer packs pod groups in rounds; pods that an earlier round placed stay.
type Packer struct {
	problem  Problem
	groups   []Group
	unplaced []int
	bins     []Bin
	// binCounts counts the pods of a bin for each rule while it is filled.
	binCounts binCounts
	// usedNodes are existing nodes on which pods were placed. usedNodeOf maps node indexes to 1 +
	// the index in usedNodes.
	usedNodes  []usedNode
	usedNodeOf []int32
	// binSites are the counts of bins for the rules, computed on first use.
	binSites []site
	// members counts the placed members of each rule.
	members []int
	// podCount is the number of pods of all pod groups, which is at least that of placed pods.
	podCount int
	// usedSteps is the effort so far.
	usedSteps int
	// candidatesOf are the candidates of each pool.
	candidatesOf []Set
	// initialPools are the pools' limits at the start.
	initialPools []Pool
	// placedSingly is true if pods were placed one by one and the bins may be larger than
	// needed.
	placedSingly bool
	// zoneQuotasScarce is true if zone quotas may run out.
	zoneQuotasScarce bool
	// sparePools is the limits that remain after all bins got their pods.
	sparePools []Pool
	// hostRule is the rule that needs the most nodes; -1 for none. hostPrice is the highest price of a
	// separate node.
	hostRule  int
	hostPrice float64
	// capacities are the capacities of all candidates, concatenated, as the linear program uses it.
	capacities []float64
	// lastBought are the candidates of the last solution of the linear program.
	lastBought []int
	scratch    scratch
}
