package disruption

import "fmt"

// why says in words what a command is for.
func why(a *attempt) string {
	return fmt.Sprintf("%s: %d nodes go, %d come, %d pods move, $%.4f an hour is saved", a.Method, len(a.nodes), len(a.Result.Nodes), a.PodsMoved, a.SavedPerHour)
}
