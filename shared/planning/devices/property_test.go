package devices

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"
)

// check is a test or a check of rapid.
type check interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// drawWorld draws a cluster with shared and own devices, counters and nodes.
func drawWorld(t *rapid.T) world {
	w := world{}
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		name := fmt.Sprint("p", i)
		var devices []resourcev1.Device
		for j := range rapid.IntRange(1, 4).Draw(t, "devices") {
			options := []deviceOption{withAttribute("numa", rapid.SampledFrom([]string{"0", "1"}).Draw(t, "numa"))}
			if rapid.Bool().Draw(t, "shared") {
				options = append(options, sharing("memory=8"))
			}
			if i == 0 {
				options = append(options, consuming("s", fmt.Sprint("slots=", rapid.IntRange(0, 3).Draw(t, "slots"))))
			}
			devices = append(devices, newDevice(fmt.Sprint("d", j), options...))
		}
		s := newResourceSlice(name, devices)
		switch rapid.IntRange(0, 2).Draw(t, "place") {
		case 0:
			inZone(rapid.SampledFrom([]string{"zone-a", "zone-b"}).Draw(t, "zone"))(&s)
		case 1:
			onNode("n0")(&s)
		}
		if i == 0 {
			w.slices = append(w.slices, newResourceSlice("counters", nil, ofPool(name, 1, 2), withCounters(counterSet("s", "slots=5"))))
			s.Spec.Pool.ResourceSliceCount = 2
		}
		w.slices = append(w.slices, s)
	}
	return w
}

// drawAttempts draws pods on existing and new nodes.
func drawAttempts(t *rapid.T) []attempt {
	small, large := newTypeOf("small", newDevices("a")), newTypeOf("large", []resourcev1.Device{newDevice("a"), newDevice("b", sharing("memory=4"))})
	sites := []Site{onExisting("n0"), on("n1", small, large), on("n2", large), inZones(on("n3", small, large), "zone-b")}
	var out []attempt
	for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
		one := attempt{site: rapid.SampledFrom(sites).Draw(t, "site")}
		for j := range rapid.IntRange(1, 2).Draw(t, "claims") {
			request := newExact("gpu", rapid.Int64Range(1, 3).Draw(t, "count"), requesting(fmt.Sprint("memory=", rapid.IntRange(1, 4).Draw(t, "memory"))))
			if rapid.Bool().Draw(t, "alternatives") {
				request = newFirstAvailable("gpu", newExact("own", 2, selecting("!device.allowMultipleAllocations")), newExact("any", 1))
			}
			c := newClaim(fmt.Sprintf("c%d-%d", i, j), []resourcev1.DeviceRequest{request})
			if rapid.Bool().Draw(t, "constraint") {
				matching(gpuDriver + "/numa")(c)
			}
			one.claims = append(one.claims, c)
		}
		if rapid.IntRange(0, 3).Draw(t, "release") == 0 {
			one.drop = []string{"small"}
		}
		out = append(out, one)
	}
	return out
}

// run returns what the attempts allocate, and checks after each that nothing is allocated twice.
func (w world) run(t check, attempts []attempt) (out []string) {
	a := w.newAllocator()
	for _, one := range attempts {
		got, err := a.Allocate(one.site, one.claims)
		out = append(out, fmt.Sprint(describe(got), err))
		if err != nil {
			continue
		}
		a.Commit(got, got.Types)
		a.Release(one.site.ID, one.drop)
		a.checkTotals(t)
		a.checkOnce(t)
	}
	return out
}

// checkOnce checks that no device is allocated twice on one instance type of a site, and no published
// device on two sites.
func (a *Allocator) checkOnce(t check) {
	byType, bySite := map[string]bool{}, map[DeviceKey]string{}
	capacity := map[string]quantity{}
	for _, c := range a.Committed() {
		for name, list := range c.Devices {
			for _, d := range list {
				key := fmt.Sprint(c.Site, name, d.ID)
				if d.Capacity != nil {
					sum := capacity[key]
					sum.Add(d.Capacity["memory"])
					if capacity[key] = sum; sum.Value() > 8 || d.ID.Template && sum.Value() > 4 {
						t.Fatalf("%s: requests consume %s of memory", key, sum.String())
					}
					continue
				}
				if other, known := bySite[d.ID]; byType[key] || known && other != c.Site && !d.ID.Template {
					t.Fatalf("%s is allocated twice", key)
				}
				byType[key], bySite[d.ID] = true, c.Site
			}
		}
	}
}

func TestNothingIsAllocatedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, attempts := drawWorld(t), drawAttempts(t)
		first := w.run(t, attempts)
		shuffled := w
		shuffled.slices = slices.Clone(w.slices)
		rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))).Shuffle(len(shuffled.slices), func(i, j int) {
			shuffled.slices[i], shuffled.slices[j] = shuffled.slices[j], shuffled.slices[i]
		})
		if second := shuffled.run(t, attempts); !slices.Equal(first, second) {
			t.Fatalf("the order of the slices changes the result:\n%q\n%q", first, second)
		}
	})
}

// TestSearchIsLimited checks that a search without a solution ends: 40 devices in pairs that differ.
func TestSearchIsLimited(t *testing.T) {
	var devices []resourcev1.Device
	for i := range 40 {
		devices = append(devices, newDevice(fmt.Sprint("d", i), withAttribute("a", strconv.Itoa(i/16)), withAttribute("b", strconv.Itoa(i%2))))
	}
	w := world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", devices)}}
	claim := newClaim("c", []resourcev1.DeviceRequest{newExact("x", 8), newExact("y", 8), newExact("z", 1, selecting("false"))}, matching(gpuDriver+"/a", "x"), matching(gpuDriver+"/b", "y"))
	w.check(t, attempt{site: on("n"), claims: these(claim), want: "error: stopped after 100000 steps"})
}
