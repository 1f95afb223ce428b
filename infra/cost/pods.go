package cost

import (
	"fmt"
	"math"
	"strings"
)

// Pods are the replicas of a Deployment, or of several that are alike, with what each
// requests: cores and GiB.
type Pods struct {
	Name          string
	Replicas      float64
	Cores, Memory float64
}

// InCluster are the pods that run inside of the cluster: those of Joist's chart as it is,
// and those of Karpenter's, whose chart requests nothing and whose guide requests a core
// and 1 GiB (Karpenter: website/content/en/v1.14/getting-started).
var InCluster = []Pods{
	{Name: "Joist: watcher and lifecycle, two replicas each", Replicas: 4, Cores: 0.1, Memory: 0.75},
	{Name: "Karpenter: two replicas with the smallest pod that Fargate has", Replicas: 2, Cores: 0.25, Memory: 0.25},
	{Name: "Karpenter: two replicas as its guide requests", Replicas: 2, Cores: 1, Memory: 1},
}

// fargateOverhead is what Fargate adds to a pod's memory for its own components, in GiB.
const fargateOverhead = 0.25

// FargateSize is what it bills a pod as: cores and GiB, rounded up to a combination that it has
// (https://docs.aws.amazon.com/eks/latest/userguide/fargate-pod-configuration.html).
func FargateSize(cores, memory float64) (billedCores, billedMemory float64) {
	memory += fargateOverhead
	for _, size := range []struct{ cores, most float64 }{{0.25, 2}, {0.5, 4}, {1, 8}, {2, 16}, {4, 30}} {
		if cores > size.cores || memory > size.most {
			continue
		}
		least := size.cores * 2
		if size.cores == 0.25 && memory <= 0.5 {
			return size.cores, 0.5
		}
		return size.cores, max(least, math.Ceil(memory))
	}
	return math.NaN(), math.NaN()
}

// MonthlyCost is what the pods cost in a month on Fargate.
func (p Pods) MonthlyCost() float64 {
	cores, memory := FargateSize(p.Cores, p.Memory)
	return p.Replicas * days * 24 * (cores*fargateCore.Dollars + memory*fargateGB.Dollars)
}

// PodTable is what runs inside of the cluster as Markdown, on Fargate, and for comparison
// two small nodes that have nothing else to do.
func PodTable() string {
	var b strings.Builder
	b.WriteString("| inside of the cluster | each requests | Fargate bills each as | $ a month |\n|---|---|---|---:|\n")
	for _, p := range InCluster {
		cores, memory := FargateSize(p.Cores, p.Memory)
		fmt.Fprintf(&b, "| %s | %g cores, %g GiB | %g cores, %g GiB | %.2f |\n", p.Name, p.Cores, p.Memory, cores, memory, p.MonthlyCost())
	}
	fmt.Fprintf(&b, "| either: two nodes of type t4g.small for these pods alone, on demand | | | %.2f |\n", 2*days*24*smallNode.Dollars)
	return b.String()
}
