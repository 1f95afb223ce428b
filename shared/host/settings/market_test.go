package settings

import "testing"

func TestMarketSettings(t *testing.T) {
	for text, want := range map[string]bool{"": false, "true": true, "false": false} {
		s, err := Read(func(name string) (string, bool) {
			return text, name == IsolatedVPC || name == ZonalShift
		})
		if err != nil || s.IsolatedVPC != want || s.ZonalShift != want {
			t.Errorf("%q: isolated %t, shifts %t (%v)", text, s.IsolatedVPC, s.ZonalShift, err)
		}
	}
}
