package solver_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestAmounts converts quantities to the planner's integers and back. CPU is counted in millicores. Amounts beyond 2^54
// are cut, so that sums do not overflow.
func TestAmounts(t *testing.T) {
	const most = 1 << 54
	for _, tt := range []struct {
		name   corev1.ResourceName
		from   string
		amount int64
		to     string
	}{
		{corev1.ResourceCPU, "1500m", 1500, "1500m"},
		{corev1.ResourceCPU, "100u", 1, "1m"},
		{corev1.ResourceCPU, "2", 2000, "2"},
		{corev1.ResourceCPU, "20T", most, "18014398509481984m"},
		{corev1.ResourceCPU, "18014398509481", 18014398509481000, "18014398509481"},
		{corev1.ResourceMemory, "1Gi", 1 << 30, "1Gi"},
		{corev1.ResourceMemory, "1500m", 2, "2"},
		{corev1.ResourceMemory, "18014398509481983", most - 1, "18014398509481983"},
		{corev1.ResourceMemory, "16Pi", most, "16Pi"},
		{corev1.ResourceMemory, "17Pi", most, "16Pi"},
		{corev1.ResourceMemory, "-17Pi", -most, "-16Pi"},
		{corev1.ResourceEphemeralStorage, "2Gi", 2 << 30, "2Gi"},
		{corev1.ResourceEphemeralStorage, "2G", 2000000000, "1953125Ki"},
		{corev1.ResourceEphemeralStorage, "100M", 100000000, "100M"},
		{"nvidia.com/gpu", "2048", 2048, "2048"},
	} {
		amount, to := solver.ConvertQuantity(tt.name, resource.MustParse(tt.from))
		if amount != tt.amount || to.String() != tt.to {
			t.Errorf("%s=%s is %d and becomes %s, want %d and %s", tt.name, tt.from, amount, to.String(), tt.amount, tt.to)
		}
	}
}

// TestFitCount counts how often requests fit.
func TestFitCount(t *testing.T) {
	for _, tt := range []struct {
		name     string
		requests []int64
		room     []int64
		limit    int
		want     int
	}{
		{"nothing requested", []int64{0, 0}, []int64{5, 0}, 7, 7},
		{"one unit each", []int64{1, 0}, []int64{5, 0}, 7, 5},
		{"the scarcest resource decides", []int64{2, 3}, []int64{9, 8}, 7, 2},
		{"a remainder is not enough", []int64{4}, []int64{7}, 7, 1},
		{"negative room", []int64{0, 0}, []int64{5, -1}, 7, 0},
		{"the limit", []int64{1}, []int64{9}, 2, 2},
	} {
		if got := solver.FitCount(tt.requests, tt.room, tt.limit); got != tt.want {
			t.Errorf("%s: fits %d times, want %d", tt.name, got, tt.want)
		}
	}
}
