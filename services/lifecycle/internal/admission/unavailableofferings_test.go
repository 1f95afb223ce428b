package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const namespace = "kube-system"

var (
	noon  = memcluster.Epoch
	small = event.Offering{InstanceType: "m6i.large", Zone: "a", CapacityType: "spot"}
	large = event.Offering{InstanceType: "m6i.xlarge", Zone: "a", CapacityType: "spot"}
	zone  = event.Offering{Zone: "b"}
)

func until(o event.Offering, minutes int, reason string) planning.Unavailable {
	return planning.Unavailable{Offering: o, Until: noon.Add(time.Duration(minutes) * time.Minute), Reason: reason}
}

func stored(t *testing.T, server *memcluster.Server) []planning.Unavailable {
	t.Helper()
	key := cluster.Key{Namespace: namespace, Name: planning.UnavailableConfigMapName}
	object, err := cluster.Get[*corev1.ConfigMap](t.Context(), server, cluster.ConfigMaps, key)
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return planning.ReadUnavailable(object)
}

// A subnet is recorded without its zone's other subnets, and a placement group without other
// launches.
func TestRecordedOfferingKeepsItsScope(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	end := noon.Add(planning.UnavailableTTL)
	for _, refusals := range [][]event.Refusal{
		{{Code: "InsufficientFreeAddressesInSubnet", Subnet: "subnet-1", Blamed: []event.Offering{zone}}},
		{{Code: "InsufficientFreeAddressesInSubnet", Subnet: "subnet-2", Blamed: []event.Offering{zone}}},
		{{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", Blamed: []event.Offering{{CapacityType: "spot"}}}},
		{{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{small}, PlacementGroup: "pg-1"}, {Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{small}}},
		{{Code: "RequestLimitExceeded"}, {Code: "InsufficientFreeAddressesInSubnet", Subnet: "subnet-of-nowhere"}},
	} {
		if err := admission.RecordUnavailable(t.Context(), server, namespace, refusals, noon, noon); err != nil {
			t.Fatal(err)
		}
	}
	want := []planning.Unavailable{
		{Offering: event.Offering{CapacityType: "spot"}, Until: end, Reason: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"},
		{Offering: zone, Subnet: "subnet-1", Until: end, Reason: "InsufficientFreeAddressesInSubnet"},
		{Offering: zone, Subnet: "subnet-2", Until: end, Reason: "InsufficientFreeAddressesInSubnet"},
		{Offering: small, Until: end, Reason: "InsufficientInstanceCapacity"},
		{Offering: small, PlacementGroup: "pg-1", Until: end, Reason: "InsufficientInstanceCapacity"},
	}
	if diff := cmp.Diff(want, stored(t, server)); diff != "" {
		t.Error(diff)
	}
}

func TestAddUnavailable(t *testing.T) {
	for _, test := range []struct {
		name  string
		old   []planning.Unavailable
		fresh []planning.Unavailable
		want  []planning.Unavailable
	}{
		{"first entry", nil, []planning.Unavailable{until(small, 3, "x")}, []planning.Unavailable{until(small, 3, "x")}},
		{"another", []planning.Unavailable{until(small, 3, "x")}, []planning.Unavailable{until(zone, 2, "y")}, []planning.Unavailable{until(zone, 2, "y"), until(small, 3, "x")}},
		{"same offering, later expiry", []planning.Unavailable{until(small, 2, "x")}, []planning.Unavailable{until(small, 3, "y")}, []planning.Unavailable{until(small, 3, "y")}},
		{"same offering, earlier expiry", []planning.Unavailable{until(small, 3, "x")}, []planning.Unavailable{until(small, 2, "y")}, []planning.Unavailable{until(small, 3, "x")}},
		{"expired entries are dropped", []planning.Unavailable{until(small, 0, "x"), until(large, -1, "x")}, []planning.Unavailable{until(zone, 3, "y")}, []planning.Unavailable{until(zone, 3, "y")}},
		{"nothing", []planning.Unavailable{until(small, -1, "x")}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := memcluster.New(memcluster.Options{})
			earlier := noon.Add(-time.Hour)
			if err := admission.AddUnavailable(t.Context(), server, namespace, test.old, earlier); err != nil {
				t.Fatal(err)
			}
			before := server.Version()
			if err := admission.AddUnavailable(t.Context(), server, namespace, test.fresh, noon); err != nil {
				t.Fatal(err)
			}
			if len(test.fresh) == 0 {
				if server.Version() != before {
					t.Error("the ConfigMap was written although nothing changed")
				}
				return
			}
			if diff := cmp.Diff(test.want, stored(t, server)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The time of the message counts, so that a message that is handled again, or replayed a day later, extends nothing. A sender whose
// clock is ahead does not extend it either.
func TestUnavailableFromTimeOfMessage(t *testing.T) {
	refusals := []event.Refusal{{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{small}}}
	for name, test := range map[string]struct {
		reported, now time.Time
		want          []planning.Unavailable
	}{
		"at once":              {noon, noon, []planning.Unavailable{until(small, 3, "InsufficientInstanceCapacity")}},
		"two minutes later":    {noon, noon.Add(2 * time.Minute), []planning.Unavailable{until(small, 3, "InsufficientInstanceCapacity")}},
		"a day later":          {noon, noon.Add(24 * time.Hour), nil},
		"by a clock far ahead": {noon.Add(time.Hour), noon, []planning.Unavailable{until(small, 3, "InsufficientInstanceCapacity")}},
	} {
		t.Run(name, func(t *testing.T) {
			server := memcluster.New(memcluster.Options{})
			for range 2 {
				if err := admission.RecordUnavailable(t.Context(), server, namespace, refusals, test.reported, test.now); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, stored(t, server), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecordUnavailable(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	refusals := []event.Refusal{
		{Code: "InsufficientInstanceCapacity", Blamed: []event.Offering{small, large}},
		{Code: "RequestLimitExceeded"},
		{Code: "InsufficientFreeAddressesInSubnet", Blamed: []event.Offering{zone}, Subnet: "subnet-1"},
	}
	if err := admission.RecordUnavailable(t.Context(), server, namespace, refusals[1:2], noon, noon); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, server); got != nil {
		t.Errorf("a launch error without an unavailable offering wrote %v", got)
	}
	if err := admission.RecordUnavailable(t.Context(), server, namespace, refusals, noon, noon); err != nil {
		t.Fatal(err)
	}
	full := until(zone, 3, "InsufficientFreeAddressesInSubnet")
	full.Subnet = "subnet-1"
	want := []planning.Unavailable{
		full, until(small, 3, "InsufficientInstanceCapacity"), until(large, 3, "InsufficientInstanceCapacity"),
	}
	if diff := cmp.Diff(want, stored(t, server)); diff != "" {
		t.Error(diff)
	}
	if got := planning.FilterUnavailable(stored(t, server), noon.Add(planning.UnavailableTTL)); got != nil {
		t.Errorf("still unavailable after the TTL: %v", got)
	}
}

// An invalid ConfigMap does not stop the write.
func TestInvalidConfigMapIsReplaced(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	server.SeedObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: planning.UnavailableConfigMapName},
		Data:       map[string]string{planning.UnavailableKey: "{"},
	})
	fresh := []planning.Unavailable{until(small, 3, "x")}
	if err := admission.AddUnavailable(t.Context(), server, namespace, fresh, noon); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh, stored(t, server)); diff != "" {
		t.Error(diff)
	}
}

func TestWriteConflictIsReturned(t *testing.T) {
	for _, verb := range []memcluster.Verb{memcluster.VerbCreate, memcluster.VerbUpdate} {
		server := memcluster.New(memcluster.Options{})
		fresh := []planning.Unavailable{until(small, 3, "x")}
		if verb == memcluster.VerbUpdate {
			if err := admission.AddUnavailable(t.Context(), server, namespace, fresh, noon); err != nil {
				t.Fatal(err)
			}
		}
		server.InjectFaults(memcluster.Fault{Verb: verb, As: fault.Conflict, Times: 1})
		err := admission.AddUnavailable(t.Context(), server.ClientFor("lifecycle"), namespace, []planning.Unavailable{until(large, 3, "y")}, noon)
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s returned %v, want a conflict, so that the message is redelivered", verb, err)
		}
	}
}

// The size of the ConfigMap is limited: entries that expire first are dropped.
func TestAddIsBounded(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	add := func(minutes int, fresh ...planning.Unavailable) {
		t.Helper()
		for i := range fresh {
			fresh[i].Until = noon.Add(time.Duration(minutes) * time.Minute)
		}
		if err := admission.AddUnavailable(t.Context(), server, namespace, fresh, noon); err != nil {
			t.Fatal(err)
		}
		object, err := cluster.Get[*corev1.ConfigMap](t.Context(), server, cluster.ConfigMaps, cluster.Key{Namespace: namespace, Name: planning.UnavailableConfigMapName})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(object.Data[planning.UnavailableKey]); n > admission.MaxUnavailableBytes {
			t.Fatalf("the ConfigMap has %d bytes after the offerings until minute %d", n, minutes)
		}
	}
	many := func(prefix string) (out []planning.Unavailable) {
		for i := range 3000 {
			out = append(out, planning.Unavailable{Offering: event.Offering{InstanceType: fmt.Sprintf("%s%d.24xlarge", prefix, i), Zone: "eu-west-1a"}})
		}
		return out
	}
	add(1, many("old")...)
	add(2, planning.Unavailable{Offering: small})
	add(3, many("new")...)
	if got := stored(t, server); len(got) < 1000 || slices.ContainsFunc(got, func(u planning.Unavailable) bool { return strings.HasPrefix(u.InstanceType, "old") }) {
		t.Errorf("of 6,001 offerings %d are kept, including some that expire first", len(got))
	}
	add(4, planning.Unavailable{Offering: large})
	add(5, planning.Unavailable{Offering: event.Offering{InstanceType: strings.Repeat("x", admission.MaxUnavailableBytes)}})
	if got := stored(t, server); !slices.ContainsFunc(got, func(u planning.Unavailable) bool { return u.Offering == large }) {
		t.Error("an offering that fits was dropped for one that does not fit")
	}
}

// A reservation that is full and reclaimed is two entries, because only the second makes it unavailable.
func TestFullReservationIsRecordedApart(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	reserved := event.Offering{InstanceType: small.InstanceType, Zone: small.Zone, CapacityType: "reserved"}
	for _, code := range []string{"InvalidCapacityReservationState.Unavailable", planning.ReservationFullCode, planning.ReservationFullCode} {
		refusals := []event.Refusal{{Code: code, Blamed: []event.Offering{reserved}, Reservation: "cr-1"}}
		if err := admission.RecordUnavailable(t.Context(), server, namespace, refusals, noon, noon); err != nil {
			t.Fatal(err)
		}
	}
	s := planning.Snapshot{TakenAt: noon, Unavailable: stored(t, server)}
	if !planning.IsReservationUnavailable("cr-1", s) || !planning.IsReservationFull("cr-1", noon.Add(-time.Second), s) || planning.IsReservationFull("cr-1", noon, s) || len(s.Unavailable) != 2 {
		t.Errorf("recorded %+v", s.Unavailable)
	}
}

// Each refused launch in a row pauses the NodePool twice as long, up to a minute. Refusals during a pause do not count. A successful launch,
// other specs or a long time without a refusal begin again.
func TestPauseNodePool(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	now, total := noon, 0
	pause := func(after time.Duration, key string) time.Duration {
		t.Helper()
		now = now.Add(after)
		paused := planning.Unavailable{NodePool: "web", SpecKey: key, Reason: "UnauthorizedOperation"}
		if err := admission.PauseNodePool(t.Context(), server, namespace, paused, now); err != nil {
			t.Fatal(err)
		}
		list := stored(t, server)
		at := slices.IndexFunc(list, func(u planning.Unavailable) bool { return u.NodePool == "web" })
		if total = len(list); at < 0 || list[at].SpecKey != key || list[at].Reason != "UnauthorizedOperation" {
			t.Fatalf("recorded %+v", list)
		}
		return list[at].Until.Sub(now)
	}
	for i, want := range []float64{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := pause(time.Minute, "a"); got.Seconds() != want {
			t.Errorf("refusal %d pauses for %s, want %g s", i+1, got, want)
		}
	}
	if got := pause(20*time.Second, "a"); got != 40*time.Second {
		t.Errorf("a refusal during the pause leaves %s, want 40 s", got)
	}
	if got := pause(time.Second, "b"); got != time.Second {
		t.Errorf("the first refusal of other specs pauses for %s", got)
	}
	pause(2*time.Second, "b")
	if err := admission.ResumeNodePool(t.Context(), server, namespace, "web", now); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, server); len(got) != 0 {
		t.Errorf("after a successful launch %+v is recorded", got)
	}
	if got := pause(time.Second, "b"); got != time.Second {
		t.Errorf("the first refusal after a successful launch pauses for %s", got)
	}
	if got := pause(time.Hour, "b"); got != time.Second || total != 1 {
		t.Errorf("the first refusal after an hour pauses for %s, and %d entries are recorded", got, total)
	}
}

// The pause of a NodePool is kept even if too many offerings are unavailable.
func TestPauseIsKeptInLargeList(t *testing.T) {
	server := memcluster.New(memcluster.Options{})
	var many []planning.Unavailable
	for i := range 4000 {
		many = append(many, until(event.Offering{InstanceType: fmt.Sprintf("m%d.24xlarge", i), Zone: "eu-west-1a"}, 3, "x"))
	}
	if err := admission.AddUnavailable(t.Context(), server, namespace, many, noon); err != nil {
		t.Fatal(err)
	}
	if err := admission.PauseNodePool(t.Context(), server, namespace, planning.Unavailable{NodePool: "web"}, noon); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(stored(t, server), func(u planning.Unavailable) bool { return u.NodePool == "web" }) {
		t.Error("the pause was dropped")
	}
}
