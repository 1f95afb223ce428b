package expression

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// variables are what an expression knows of an instance type and its node.
type variables struct {
	instance catalog.InstanceType
	maxPods  int64
}

// evaluate returns the whole number that an expression gives; the fraction of a double is cut off.
func evaluate(text string, v variables) (int64, error) {
	program, err := compile(text)
	if err != nil {
		return 0, err
	}
	about := values{"expression": text, "instance-type": v.instance.Name}
	result, _, err := program.Eval(map[string]any{
		"vcpus": v.instance.VCPU, "memory_mib": v.instance.MemoryMiB, "default_enis": v.instance.Network.ENIs,
		"ips_per_eni": v.instance.Network.IPv4PerENI, "max_pods": v.maxPods, "instance_type": v.instance.Name,
	})
	if err != nil {
		return 0, withValues(fmt.Errorf("evaluating expression, %w", err), about)
	}
	switch number := result.Value().(type) {
	case int64:
		return number, nil
	case float64:
		if math.IsInf(number, 0) || math.IsNaN(number) {
			about["value"] = number
			return 0, withValues(errors.New("expression returned a non-finite value"), about)
		}
		return truncate(number), nil
	default:
		about["type"] = fmt.Sprintf("%T", number)
		return 0, withValues(errors.New("expression returned an unexpected type"), about)
	}
}

// truncate cuts off the fraction. Go leaves the result for numbers outside int64 to the processor; this is the result
// on amd64.
func truncate(number float64) int64 {
	if number >= math.MaxInt64 || number < math.MinInt64 {
		return math.MinInt64
	}
	return int64(number)
}

// Expressions give reservations in the units that users write: millicores, MiB and GiB. Those of CPU and memory are
// rounded up, so that similar types share a launch template.
const (
	roundedMillicores = 10
	roundedMiB        = 16
)

// formatReserved returns a result as the quantity of a reserved resource.
func formatReserved(name string, number int64) string {
	switch name {
	case "cpu":
		return fmt.Sprintf("%dm", roundUp(number, roundedMillicores))
	case "memory":
		return fmt.Sprintf("%dMi", roundUp(number, roundedMiB))
	case "ephemeral-storage":
		return fmt.Sprintf("%dGi", number)
	default:
		return strconv.FormatInt(number, 10)
	}
}

// roundUp returns the next multiple of step; numbers without one below the largest int64 stay.
func roundUp(number, step int64) int64 {
	if number <= 0 || number%step == 0 || number > math.MaxInt64-step {
		return number
	}
	return (number/step + 1) * step
}

// isQuantity reports whether a reserved value is a quantity, and not an expression.
func isQuantity(text string) bool {
	_, err := resource.ParseQuantity(text)
	return err == nil
}
