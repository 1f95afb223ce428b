package upstream

import "testing"

const seeds = 100

// Every object converts between upstream's and Joist's types unchanged, in both
// directions. Decoding is strict, so a field that one side lacks fails at once.
func TestRoundTrip(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name+" from upstream", func(t *testing.T) { roundTrip(t, k.theirs, k.ours) })
		t.Run(k.name+" from Joist", func(t *testing.T) { roundTrip(t, k.ours, k.theirs) })
	}
}

func roundTrip(t *testing.T, home, abroad func() any) {
	different := map[string]bool{}
	for seed := range int64(seeds) {
		start, away, back := home(), abroad(), home()
		fill(seed, start)
		first := encode(t, start)
		decode(t, first, away)
		second := encode(t, away)
		decode(t, second, back)
		for _, later := range [][]byte{second, encode(t, back)} {
			diff, err := difference(first, later)
			if err != nil {
				t.Fatal(err)
			}
			if diff != "" {
				t.Fatalf("seed %d: %T through %T (-before +after):\n%s", seed, start, away, diff)
			}
		}
		different[string(first)] = true
	}
	if len(different) < seeds*9/10 {
		t.Errorf("%d seeds gave only %d different objects", seeds, len(different))
	}
}

// The spelling of a duration is preserved byte for byte by both sides' types.
func TestDurationsKeepTheirSpelling(t *testing.T) {
	for _, spelling := range durations {
		text := `{"spec":{"template":{"spec":{"requirements":[],"nodeClassRef":null,"expireAfter":"` + spelling +
			`"}},"disruption":{"consolidateAfter":"` + spelling + `"}}}`
		k := kinds()[0]
		ours, theirs := k.ours(), k.theirs()
		decode(t, []byte(text), ours)
		decode(t, []byte(text), theirs)
		diff, err := difference(encode(t, theirs), encode(t, ours))
		if err != nil {
			t.Fatal(err)
		}
		if diff != "" {
			t.Errorf("duration %s (-upstream +ours):\n%s", spelling, diff)
		}
	}
}
