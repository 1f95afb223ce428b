package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/scenarios"
)

// Record is a whole contest with everything needed to verify or repeat it.
type Record struct {
	Date time.Time `json:"date"`
	// Commit is this repository's commit, with a plus sign if files were changed.
	Commit  string          `json:"commit"`
	Go      string          `json:"go"`
	Machine contest.Machine `json:"machine"`
	Seed    uint64          `json:"seed"`
	// Runs is the number of runs of each planner on each scenario.
	Runs int `json:"runs"`
	// Limit is Karpenter's time limit for solving.
	Limit string        `json:"limit"`
	Rows  []contest.Row `json:"rows"`
	// FleetLimit is Karpenter's time limit for each scenario of Fleets.
	FleetLimit string             `json:"fleetLimit,omitempty"`
	Fleets     []contest.FleetRow `json:"fleets,omitempty"`
}

// Encode returns the record as a file.
func (r Record) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encoding the measurements: %w", err)
	}
	return append(text, '\n'), nil
}

// Decode parses a record's file.
func Decode(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("reading the measurements: %w", err)
	}
	return r, nil
}

// planners returns the planners' names with their versions, such as Karpenter v1.15.0.
func (r Record) planners() []string {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		for _, m := range row.Results {
			// A build of a work tree has no version; the commit identifies it.
			if name := strings.TrimSuffix(m.Version, " development"); name != "" {
				seen[strings.ToUpper(name[:1])+name[1:]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// sizes are the sizes of a full comparison.
var sizes = []int{100, 1000, 5000, 10000, 50000}

// missing lists the kinds and sizes that were not measured.
func (r Record) missing(kinds []string) []string {
	measured := map[string]bool{}
	for _, row := range r.Rows {
		measured[fmt.Sprint(row.Kind, row.Pods)] = true
	}
	var out []string
	for _, size := range sizes {
		var absent []string
		for _, kind := range kinds {
			if !measured[fmt.Sprint(kind, size)] {
				absent = append(absent, scenarios.TitleOf(kind))
			}
		}
		switch len(absent) {
		case 0:
		case len(kinds):
			out = append(out, thousands(size)+" pods")
		default:
			out = append(out, fmt.Sprintf("%s pods of %s", thousands(size), strings.Join(absent, ", ")))
		}
	}
	return out
}
