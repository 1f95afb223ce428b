package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/scenario"
)

// crowd returns a scenario with n pods and 890 types, as many as a region has.
func crowd(t testing.TB, n int, different bool) scenario.Scenario {
	t.Helper()
	var types, pods []string
	for i := range 890 {
		types = append(types, strings.Replace(kind, "a.large", fmt.Sprintf("a%d.large", i), 1))
	}
	groups, count := 1, n
	if different {
		groups, count = n, 1
	}
	for i := range groups {
		pods = append(pods, fmt.Sprintf(`{"count": %d, "template": {"metadata": {"name": "p%d", "labels": {"app": "a"}},
			"spec": {"containers": [{"resources": {"requests": {"cpu": "%dm", "memory": "%dMi"}}}]}}}`, count, i, 100+i, 256+3*i))
	}
	text := `{"instanceTypes": [` + strings.Join(types, ",") + `], "podGroups": [` + strings.Join(pods, ",") + `], "nodePools": [
		{"metadata": {"name": "p"}, "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {"name": "c"}}}}}]}`
	s, err := scenario.Parse(nil, "s.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestProblemIsFrugal bounds the memory that Problem allocates.
func TestProblemIsFrugal(t *testing.T) {
	for _, tt := range []struct {
		name      string
		different bool
		allocsMax float64
	}{{"different pods", true, 3000}, {"equal pods", false, 60}} {
		s := crowd(t, 1000, tt.different)
		pods := s.Pods()
		if got := testing.AllocsPerRun(5, func() { s.Problem(pods) }); got > tt.allocsMax {
			t.Errorf("%s: %.0f allocations for %d pods, more than %v", tt.name, got, len(pods), tt.allocsMax)
		}
	}
}

func BenchmarkProblem(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, different := range []bool{false, true} {
			s := crowd(b, n, different)
			pods := s.Pods()
			b.Run(fmt.Sprintf("pods=%d/different=%v", n, different), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Problem(pods)
				}
			})
		}
	}
}
