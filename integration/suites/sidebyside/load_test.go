package sidebyside

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func newTestDay(t *testing.T, seed uint64, scale float64) Day {
	t.Helper()
	d, err := NewDay(seed, scale)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStepsFollowTraces(t *testing.T) {
	d := newTestDay(t, 1, 1)
	steps := d.Steps(1, 0, 24*time.Hour)
	if len(steps) != 288 {
		t.Fatalf("%d steps, want one each 5 minutes", len(steps))
	}
	for _, a := range d.Apps {
		var counts []int
		rolls := 0
		for _, s := range steps {
			counts = append(counts, s.Replicas[a.Name])
			if slices.Contains(s.Rolled, a.Name) {
				rolls++
			}
		}
		least, most := slices.Min(counts), slices.Max(counts)
		if limit := float64(a.Most) * (1 + 4*a.Noise); float64(most) > limit+1 || most == least {
			t.Errorf("%s has %d to %d replicas, and %d at the maximum of its trace", a.Name, least, most, a.Most)
		}
		if night := a.Trace == nightlyTrace; night != (least == 0) {
			t.Errorf("%s has at least %d replicas", a.Name, least)
		}
		if rolls != len(a.Rolls) {
			t.Errorf("%s is rolled %d times, want %d", a.Name, rolls, len(a.Rolls))
		}
	}
}

func TestStepsRepeat(t *testing.T) {
	whole := newTestDay(t, 1, 0.5).Steps(1, 0, 24*time.Hour)
	if again := newTestDay(t, 1, 0.5).Steps(1, 7*time.Hour, 8*time.Hour); !reflect.DeepEqual(again, whole[84:96]) {
		t.Error("a part of the day differs from the whole day of the same seed")
	}
	if other := newTestDay(t, 2, 0.5).Steps(2, 0, 24*time.Hour); reflect.DeepEqual(other, whole) {
		t.Error("two seeds give the same day")
	}
}

func TestReadTracesRejects(t *testing.T) {
	for name, one := range map[string]struct{ old, new, want string }{
		"a missing line":  {"\n6681407,49.69\n", "\n", "288 lines with the names, want 289"},
		"a word":          {"6681407,49.69", "6681407,much", `value 1 of google is "much"`},
		"a negative":      {"6681407,49.69", "-1,49.69", `value 1 of azure is "-1"`},
		"a missing value": {"6681407,49.69", "6681407", "wrong number of fields"},
	} {
		text := bytes.Replace(dayFile, []byte(one.old), []byte(one.new), 1)
		if _, err := ReadTraces(text); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: %v, want %s", name, err, one.want)
		}
	}
}
