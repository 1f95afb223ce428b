package scenarios

import (
	"math"
	"math/rand/v2"
)

// draw is a seeded random source with the distributions.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) *draw {
	const stream = 0x6a6f697374
	return &draw{rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // seeded, so that a scenario can be made again
}

// share is a value with its percentage.
type share[T any] struct {
	percent int
	value   T
}

// pick draws one of the values by percentage.
func pick[T any](d *draw, shares []share[T]) T {
	at := d.IntN(total(shares))
	for _, s := range shares {
		if at -= s.percent; at < 0 {
			return s.value
		}
	}
	return shares[len(shares)-1].value
}

func total[T any](shares []share[T]) (sum int) {
	for _, s := range shares {
		sum += s.percent
	}
	return sum
}

// oneOf draws one of the values uniformly.
func oneOf[T any](d *draw, values ...T) T { return values[d.IntN(len(values))] }

// between draws uniformly from an interval.
func (d *draw) between(low, high float64) float64 { return low + (high-low)*d.Float64() }

// replicas draws the replicas of a deployment: most have one, a few very many (Pareto).
func (d *draw) replicas(most int) int {
	const tail = 1.25
	return min(most, int(math.Pow(1-d.Float64(), -1/tail)))
}

// size is a pod's requests.
type size struct{ milliCPU, memoryMiB int64 }

// cpus are in millicores.
var cpus = []share[int64]{
	{9, 50}, {18, 100}, {10, 200}, {11, 250}, {17, 500}, {16, 1000}, {11, 2000}, {5, 4000}, {2, 8000}, {1, 16000},
}

// size draws requests: memory is about 3 GiB per core, with a variance that yields
// compute-, general- and memory-bound pods.
func (d *draw) size() size {
	const (
		medianGiB, sigma   = 3, 0.8
		leastGiB, mostGiB  = 0.5, 16
		stepMiB            = 64
		mebibytesAGibibyte = 1024
	)
	cpu := pick(d, cpus)
	perCore := min(max(medianGiB*math.Exp(sigma*d.NormFloat64()), leastGiB), mostGiB)
	steps := math.Round(perCore * mebibytesAGibibyte * float64(cpu) / 1000 / stepMiB)
	return size{cpu, stepMiB * max(1, int64(steps))}
}

// jitter changes a size by up to a quarter, so that no two are equal.
func (d *draw) jitter(s size) size {
	const least, most = 0.75, 1.25
	return size{
		int64(float64(s.milliCPU) * d.between(least, most)),
		int64(float64(s.memoryMiB) * d.between(least, most)),
	}
}
