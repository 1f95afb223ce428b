package soak

import (
	"math"
	"time"
)

// ServiceReading is what a service's metrics show at one time.
type ServiceReading struct {
	// At is the time since the beginning.
	At time.Duration `json:"at"`
	// Life counts the processes of the service: each restart begins another.
	Life int `json:"life"`
	// Heap are the bytes that were live after the last garbage collection.
	Heap       float64 `json:"heap"`
	Goroutines float64 `json:"goroutines"`
}

// Growth is the common slope of a value over all lives of a service.
type Growth struct {
	// Mean is the mean value. PerHour is how much it grows in an hour, and Error the standard error of that.
	Mean, PerHour, Error float64
	// Readings is how many readings it is of.
	Readings int
}

// warmUp is how long a process fills its caches: readings of it do not count.
const warmUp = time.Minute

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

// IsGrowing reports whether the value certainly grows by more than a part of its mean in an hour: three standard errors
// below the slope are still more. Fewer than ten minutes of readings decide nothing: caches of the cluster fill that long.
func (g Growth) IsGrowing(part float64) bool {
	const enough = 120
	return g.Readings >= enough && g.PerHour-3*g.Error > part*g.Mean
}
