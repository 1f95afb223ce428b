package packing

// Packer packs lots, round after round: what an earlier round placed stays.
type Packer struct {
	problem Problem
	lots    []Lot
	left    []int
	bins    []Bin
	// content counts what a bin holds of each rule while it is being filled.
	content tallies
	// grounds are nodes that exist and that something was put on, and trodden, by node,
	// 1 + the place of each there.
	grounds []ground
	trodden []int32
	// binSites are what bins hold of the rules; one is made when it is first asked for.
	binSites []site
	// members counts the placed members of each rule.
	members []int
	// asked counts the pods of all lots.
	asked int
	// steps counts the effort.
	steps int
	// sold are the columns of each pool.
	sold []Set
	// quotas are the pools' limits as they were in the beginning.
	quotas []Pool
	// singly is whether pods were placed one by one, and bins not settled since.
	singly bool
	// scarce is whether rations have to be looked at.
	scarce bool
	// spare is what is left of them when all is packed and shared out.
	spare []Pool
	// lonely is the rule that demands the most nodes, -1 for none; hostPrice is what
	// a node of its own is worth at most.
	lonely    int
	hostPrice float64
	// rooms are the columns' room as the linear program sees it, one after the other.
	rooms []float64
	// decisive are the columns that decided the last prices.
	decisive []int
	scratch  scratch
}
