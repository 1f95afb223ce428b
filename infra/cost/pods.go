package cost

import (
	"fmt"
	"math"
	"strings"
)

// Pods are the replicas of one or several equal Deployments, with the requests of each in
// cores and GiB.
type Pods struct {
	Name          string
	Replicas      float64
	Cores, Memory float64
}

// InCluster are the pods inside the cluster: those of Joist's chart, and for comparison those
// of Karpenter, whose chart requests nothing and whose guide requests a core and 1 GiB (Karpenter: website/content/en/v1.14/getting-started).
var InCluster = []Pods{
	{Name: "Joist: watcher and lifecycle, two replicas each", Replicas: 4, Cores: 0.1, Memory: 0.75},
	{Name: "Karpenter: two replicas with the smallest pod that Fargate has", Replicas: 2, Cores: 0.25, Memory: 0.25},
	{Name: "Karpenter: two replicas as its guide requests", Replicas: 2, Cores: 1, Memory: 1},
}

// fargateOverhead is the memory that Fargate adds to each pod, in GiB.
const fargateOverhead = 0.25

// FargateSize returns the billed size of a pod: cores and GiB, rounded up to a size of Fargate
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

// MonthlyCost returns the monthly cost of the pods on Fargate in US dollars.
func (p Pods) MonthlyCost() float64 {
	cores, memory := FargateSize(p.Cores, p.Memory)
	return p.Replicas * days * 24 * (cores*fargateCore.Dollars + memory*fargateGB.Dollars)
}

// PodTable returns a Markdown table of the costs inside the cluster: on Fargate, and on two
// small dedicated nodes.
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
