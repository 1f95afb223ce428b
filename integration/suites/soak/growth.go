package soak

import (
	"math"
	"slices"
	"time"
)

// ServiceReading is what a service's metrics show at one time.
type ServiceReading struct {
	// At is the time since the beginning.
	At time.Duration `json:"at"`
	// Life counts the processes of the service: each restart begins another.
	Life int `json:"life"`
	// Heap are the bytes that were live after the last garbage collection, which was at the Unix time Collected.
	Heap      float64 `json:"heap"`
	Collected float64 `json:"collected"`
	// Goroutines and Files are the numbers of goroutines and of open file descriptors.
	Goroutines float64 `json:"goroutines"`
	Files      float64 `json:"files"`
}

// Growth is the common slope of a value over all lives of a service.
type Growth struct {
	// Mean is the mean value. PerHour is how much it grows in an hour, and Error the standard error of that.
	Mean, PerHour, Error float64
	// Readings is how many readings it is of, and Span the time from the first to the last of each life, in total.
	Readings int
	Span     time.Duration
}

const (
	// warmUp is how long a process fills its caches: readings of it do not count.
	warmUp = time.Minute
	// minSpan is the shortest time over which readings show growth.
	minSpan = 10 * time.Minute
)

// FindGrowth fits one slope and a level for each life to the readings after from, without the first minute of a life.
func FindGrowth(readings []ServiceReading, from time.Duration, value func(ServiceReading) float64) Growth {
	lives := map[int][]ServiceReading{}
	began := map[int]time.Duration{}
	for _, r := range readings {
		if _, known := began[r.Life]; !known {
			began[r.Life] = r.At
		}
		if r.At >= from && r.At-began[r.Life] >= warmUp {
			lives[r.Life] = append(lives[r.Life], r)
		}
	}
	var g Growth
	var xx, xy, yy float64
	fitted := 0
	for _, life := range lives {
		var x, y float64
		for _, r := range life {
			x, y = x+r.At.Hours(), y+value(r)
		}
		n := float64(len(life))
		g.Mean += y
		g.Readings += len(life)
		g.Span += life[len(life)-1].At - life[0].At
		for _, r := range life {
			dx, dy := r.At.Hours()-x/n, value(r)-y/n
			xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
		}
		fitted++
	}
	if g.Readings > 0 {
		g.Mean /= float64(g.Readings)
	}
	free := float64(g.Readings - fitted - 1)
	if xx == 0 || free < 1 {
		return g
	}
	g.PerHour = xy / xx
	g.Error = math.Sqrt(math.Max(0, yy-g.PerHour*xy) / free / xx)
	return g
}

// keepCollections keeps the first reading after each garbage collection: the following readings show the same heap again, and
// would make its growth look more certain than it is.
func keepCollections(readings []ServiceReading) []ServiceReading {
	return slices.CompactFunc(slices.Clone(readings), func(a, b ServiceReading) bool {
		return a.Life == b.Life && a.Collected == b.Collected
	})
}

// IsGrowing reports whether the value certainly grows by more than a part of its mean in an hour: three standard errors
// below the slope are still more. Readings over less than ten minutes decide nothing: caches of the cluster fill that long.
func (g Growth) IsGrowing(part float64) bool {
	return g.Span >= minSpan && g.PerHour-3*g.Error > part*g.Mean
}
