package interrupted

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlay runs only the comparison's first scene, for CPU profiles: calls take no
// time, and 15,000 messages are in the queue at the start.
func BenchmarkPlay(b *testing.B) {
	for _, side := range []Side{Joist, Karpenter} {
		for _, known := range []int{100, 50, 0} {
			b.Run(fmt.Sprintf("%s/known=%d", side.Name, known), func(b *testing.B) {
				var sum float64
				for range b.N {
					b.StopTimer()
					messages := Mix(15_000, known, time.Now())
					b.StartTimer()
					result, err := Play(b.Context(), side, Scene{}, known, messages)
					if err != nil {
						b.Fatal(err)
					}
					sum += result.CPUMicros
				}
				b.ReportMetric(sum/float64(b.N), "cpu-µs/message")
			})
		}
	}
}
