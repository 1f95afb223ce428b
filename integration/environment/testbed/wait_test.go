package testbed

import (
	"strings"
	"testing"
	"time"
)

// A wait lasts as long as the state changes, but not forever.
func TestPatience(t *testing.T) {
	const limit, most = 3 * time.Minute, 12 * time.Minute
	for _, tt := range []struct {
		name  string
		state func(minute int) string
		// want is the minute after which the wait is over, and why it is.
		want int
		why  string
	}{
		{"nothing changes", func(int) string { return "5 nodes" }, 4, "nothing changed for 3m0s"},
		{"it stops changing", func(minute int) string { return strings.Repeat("n", max(0, 5-minute)) }, 9, "nothing changed for 3m0s"},
		{"it changes slowly", func(minute int) string { return strings.Repeat("n", minute/3) }, 13, "it took longer than 12m0s"},
		{"it changes back and forth", func(minute int) string { return strings.Repeat("n", minute%2) }, 13, "it took longer than 12m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &patience{limit: limit, most: most}
			for minute := range 60 {
				why := p.checkState(tt.state(minute), time.Unix(0, 0).Add(time.Duration(minute)*time.Minute))
				if why != "" {
					if minute != tt.want || why != tt.why {
						t.Errorf("the wait ends after %d minutes because %s, want %d because %s", minute, why, tt.want, tt.why)
					}
					return
				}
			}
			t.Error("the wait does not end")
		})
	}
}
