package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Kind is a type of workload, of any size.
type Kind struct {
	// Name is the first part of the scenario's name, Word the second.
	Name, Word string
	// Title names the kind on pages and in drawings, in at most 22 characters.
	Title string
	// About describes briefly the difficulty, after the title.
	About string
	// Fleet kinds are clusters to consolidate: their size is the number of nodes, and no
	// pod is pending.
	Fleet bool

	pools func(size int) []karpenter.NodePool
	// fill adds the running or pending pods.
	fill func(*draw, *Scenario, int)
}

// Kinds returns all kinds, in the order of the tables.
func Kinds() []Kind {
	return []Kind{
		{Name: "a", Word: "inflate", Title: "identical pods", About: "of one size", pools: one(onDemandOnly, amd64), fill: identical},
		{Name: "b", Word: "hetero", Title: "mixed Deployments", About: "of many sizes, a few of them very large", pools: one(onDemandOnly, both), fill: deployments},
		{Name: "bamd", Title: "one architecture", About: "the mixed Deployments, with types of amd64 only", pools: one(onDemandOnly, amd64), fill: deployments},
		{Name: "bspot", Title: "spot instances", About: "the mixed Deployments, with spot allowed", pools: one(spotToo, both), fill: deployments},
		{Name: "u", Word: "unique", Title: "every pod different", About: "the mixed Deployments, with no two pods alike", pools: one(onDemandOnly, both), fill: unique},
		{Name: "c", Word: "mixed", Title: "Karpenter's benchmark", About: "the mix of pods of Karpenter's own benchmark", pools: one(onDemandOnly, both), fill: mixed},
		{Name: "r", Word: "services", Title: "real services", About: "Deployments that are spread over zones, kept on different hosts, or bound to a zone", pools: one(onDemandOnly, both), fill: services},
		{Name: "d", Word: "multi", Title: "five NodePools", About: "with GPUs, taints, weights and limits", pools: five, fill: teams},
		{Name: "e", Word: "consolidate", Title: "mostly empty nodes", About: "to consolidate", Fleet: true, pools: one(onDemandOnly, both), fill: sparse},
		{Name: "f", Word: "consolidate", Title: "fairly full nodes", About: "to consolidate", Fleet: true, pools: one(onDemandOnly, both), fill: dense},
	}
}

// Find returns the kind with a name.
func Find(name string) (Kind, error) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return Kind{}, fmt.Errorf("unknown kind of scenario %q (use %s)", name, strings.Join(names, ", "))
	}
	return kinds[i], nil
}

// TitleOf returns the title of a kind, or the name itself if there is no such kind.
func TitleOf(name string) string {
	kind, err := Find(name)
	if err != nil {
		return name
	}
	return kind.Title
}

// Make returns the scenario of a size. A larger one of the same seed begins with the same
// deployments, so that sizes can be compared.
func (k Kind) Make(size int, seed uint64) Scenario {
	s := Scenario{
		Name: k.name(size), Seed: seed, InstanceTypesFile: TypesFile,
		NodePools: k.pools(size), DaemonSetPods: daemons(),
	}
	k.fill(newDraw(seed), &s, size)
	return s
}

func (k Kind) name(size int) string {
	parts := []string{k.Name, k.Word, strconv.Itoa(size)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-")
}
