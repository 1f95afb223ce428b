package solver_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// amounts are cores in thousandths, bytes and pods.
type amounts [3]int64

func amountsOf(list corev1.ResourceList) amounts {
	return amounts{list.Cpu().MilliValue(), list.Memory().Value(), list.Pods().Value()}
}

// partition finds the cheapest way to divide pods among nodes. It tries all, and shares no code with the planner.
type partition struct {
	needs []amounts
	// sizes are the instance types, the cheapest first, with their prices in US dollars an hour.
	sizes  []amounts
	prices []float64
	// known are the lowest prices for some remaining pods, and ofNode those for one node with some pods.
	known, ofNode map[string]float64
}

// lowestPrice returns the lowest price at which nodes can hold the pods of the batch, in US dollars an hour; infinite
// if none can.
func lowestPrice(batch planning.Batch, types []instancetypes.Type, allowed func(instancetypes.Type) bool) float64 {
	p := partition{known: map[string]float64{}, ofNode: map[string]float64{}}
	type size struct {
		room  amounts
		price float64
	}
	var sizes []size
	for _, t := range types {
		for _, o := range t.Offerings {
			if allowed(t) && o.Available && o.Reservation == "" && capacityTypeAllowed(batch, o) {
				sizes = append(sizes, size{amountsOf(t.Allocatable), o.PricePerHour})
			}
		}
	}
	slices.SortFunc(sizes, func(a, b size) int { return cmp.Compare(a.price, b.price) })
	for _, s := range sizes {
		p.sizes, p.prices = append(p.sizes, s.room), append(p.prices, s.price)
	}
	left := make([]byte, len(batch.Pending))
	for i, class := range batch.Pending {
		left[i] = byte(len(class.Pods))
		p.needs = append(p.needs, amountsOf(class.Spec.Requests))
	}
	return p.priceOf(left)
}

// priceOf returns the lowest price of nodes for the remaining pods of each class.
func (p *partition) priceOf(left []byte) float64 {
	first := slices.IndexFunc(left, func(n byte) bool { return n > 0 })
	if first < 0 {
		return 0
	}
	if cost, ok := p.known[string(left)]; ok {
		return cost
	}
	best, rest, part := math.Inf(1), slices.Clone(left), make([]byte, len(left))
	var divide func(i int)
	divide = func(i int) {
		if i == len(left) {
			if node := p.priceOfNode(part); node < best {
				best = min(best, node+p.priceOf(rest))
			}
			return
		}
		for n := range left[i] + 1 {
			if i == first && n == 0 {
				continue // Some node has the first pod.
			}
			part[i], rest[i] = n, left[i]-n
			divide(i + 1)
		}
		part[i], rest[i] = 0, left[i]
	}
	divide(first)
	p.known[string(left)] = best
	return best
}

func (p *partition) priceOfNode(pods []byte) float64 {
	if price, ok := p.ofNode[string(pods)]; ok {
		return price
	}
	var used amounts
	for i, n := range pods {
		for r := range used {
			used[r] += p.needs[i][r] * int64(n)
		}
	}
	price := math.Inf(1)
	if i := slices.IndexFunc(p.sizes, func(room amounts) bool {
		return used[0] <= room[0] && used[1] <= room[1] && used[2] <= room[2]
	}); i >= 0 {
		price = p.prices[i]
	}
	p.ofNode[string(pods)] = price
	return price
}

// TestSmallBatchesCostLeast compares plans for few pods with the cheapest plan that exists. A plan may cost more for
// resilience.
func TestSmallBatchesCostLeast(t *testing.T) {
	cores, memory := []int{250, 500, 1000, 2000, 4000, 8000}, []float64{1, 1.5, 2, 3, 4, 5, 6, 7, 8}
	pods := func(name string, count, millicores int, gibPerCore float64) planning.PodClass {
		return planningtest.NewPods(name, count, fmt.Sprintf("%dm", millicores), fmt.Sprintf("%dMi", int(gibPerCore*float64(millicores)*1.024)))
	}
	var equal [][]planning.PodClass
	for _, c := range cores {
		for _, m := range memory {
			for n := 2; n <= 8; n++ {
				equal = append(equal, []planning.PodClass{pods("w", n, c, m)})
			}
		}
	}
	mixed := func(batches, classes, least, most int) (out [][]planning.PodClass) {
		draw := rapid.Custom(func(t *rapid.T) (out []planning.PodClass) {
			counts := make([]int, classes)
			for range rapid.IntRange(least, most).Draw(t, "pods") {
				counts[rapid.IntRange(0, classes-1).Draw(t, "class")]++
			}
			for i, n := range counts {
				if one := pods(fmt.Sprint("w", i), n, rapid.SampledFrom(cores).Draw(t, "millicores"), rapid.SampledFrom(memory).Draw(t, "GiB for each core")); n > 0 {
					out = append(out, one)
				}
			}
			return out
		})
		for seed := range batches {
			out = append(out, draw.Example(seed))
		}
		return out
	}
	cat := planningtest.NewCatalogue()
	var types []instancetypes.Type
	for _, tt := range []struct {
		name    string
		batches [][]planning.PodClass
		// mean and worst are how much more plans may cost, as fractions of the lowest price.
		mean, worst float64
	}{
		{"equal pods", equal, 0.001, 0.01},
		{"up to 12 pods in 4 shapes", mixed(60, 4, 4, 12), 0.005, 0.03},
		{"up to 20 pods in 6 shapes", mixed(40, 6, 8, 20), 0.005, 0.03},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sum, worst := 0.0, 0.0
			for _, pending := range tt.batches {
				batch := benchBatch(pending)
				stock := instancetypes.New(batch.Snapshot, cat)
				if types == nil {
					types = stock.TypesForPool("default", "default")
				}
				least, result := lowestPrice(batch, types, ordinary), solver.SolveWithTypes(batch, stock)
				over := result.PricePerHour/least - 1
				sum, worst = sum+over, max(worst, over)
				if len(result.Unplaced) > 0 || over < -1e-9 || over > tt.worst {
					t.Errorf("%v: the plan costs $%.4f without %d pods, and the cheapest $%.4f", pending, result.PricePerHour, len(result.Unplaced), least)
				}
			}
			t.Logf("%d batches: %.2f %% above the lowest price, at most %.2f %%", len(tt.batches), 100*sum/float64(len(tt.batches)), 100*worst)
			if sum > tt.mean*float64(len(tt.batches)) {
				t.Errorf("plans cost %.2f %% more on average, want at most %.2f %%", 100*sum/float64(len(tt.batches)), 100*tt.mean)
			}
		})
	}
}

// BenchmarkSmallBatches plans batches for which all divisions of the pods are compared.
func BenchmarkSmallBatches(b *testing.B) {
	cat := planningtest.NewCatalogue()
	for _, tt := range []struct {
		name           string
		classes, count int
	}{{"8 equal pods", 1, 8}, {"2000 equal pods", 1, 2000}, {"12 pods in 4 shapes", 4, 3}, {"18 pods in 6 shapes", 6, 3}, {"13 different pods", 13, 1}} {
		var pending []planning.PodClass
		for i := range tt.classes {
			pending = append(pending, planningtest.NewPods(fmt.Sprint("w", i), tt.count, fmt.Sprintf("%dm", 250<<(i%6)+i), fmt.Sprintf("%dMi", 300*(i+1))))
		}
		batch := benchBatch(pending)
		stock := instancetypes.New(batch.Snapshot, cat)
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				solver.SolveWithTypes(batch, stock)
			}
		})
	}
}
