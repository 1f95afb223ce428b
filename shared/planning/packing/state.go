package packing

// Packer packs lots in rounds; pods that an earlier round placed stay.
type Packer struct {
	problem Problem
	lots    []Lot
	left    []int
	bins    []Bin
	// content counts the pods of a bin for each rule while it is filled.
	content tallies
	// grounds are existing nodes on which pods were placed. trodden maps node indexes to 1 + the index
	// in grounds.
	grounds []ground
	trodden []int32
	// binSites are the counts of bins for the rules, computed on first use.
	binSites []site
	// members counts the placed members of each rule.
	members []int
	// asked counts the pods of all lots.
	asked int
	// steps counts the effort.
	steps int
	// sold are the columns of each pool.
	sold []Set
	// quotas are the pools' limits at the start.
	quotas []Pool
	// singly is true if pods were placed one by one and the bins need to settle.
	singly bool
	// scarce is true if rations may run out.
	scarce bool
	// spare is the limits that remain after all bins got their part.
	spare []Pool
	// lonely is the rule that needs the most nodes; -1 for none. hostPrice is the highest price of a
	// separate node.
	lonely    int
	hostPrice float64
	// rooms is the room of all columns, concatenated, as the linear program uses it.
	rooms []float64
	// decisive are the columns of the last solution of the linear program.
	decisive []int
	scratch  scratch
}
