package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Reproduction is the comparison of a recorded plan with the plan that this command makes from the same
// documents.
type Reproduction struct {
	// Plan is the key of the recorded plan in the bucket, and Input that of the batch or snapshot.
	Plan  string `json:"plan,omitempty"`
	Input string `json:"input,omitempty"`
	// Catalogue is the key of the catalogue of the decision.
	Catalogue string `json:"catalogue,omitempty"`
	// IsReproduced reports whether both plans are the same byte for byte.
	IsReproduced bool `json:"reproduced"`
	// Differences are the first differences, and what may have caused them.
	Differences []string `json:"differences"`
}

// differencesMax is the maximum number of differences that are listed.
const differencesMax = 5

// Reproduce plans a recorded batch again and compares the result with the recorded plan.
func Reproduce(batch planning.Batch, cat catalog.Catalogue, plan planning.Plan, planRef event.Ref) (Reproduction, launchspec.Built, error) {
	built, err := planner.Plan(batch, plan.Batch, cat)
	if err != nil {
		return Reproduction{}, built, fmt.Errorf("planning batch %d again: %w", batch.Seq, err)
	}
	out, err := compare(built.Plan, plan, planRef)
	out.Catalogue = refKey(batch.Snapshot.Catalogue)
	return out, built, err
}

// ReproduceReplacement evaluates a recorded snapshot again and compares the plan of the replacements of
// one proposal with the recorded one. Disruption evaluates a snapshot while it is current, so the time of
// the decision may be later than that of the snapshot. Only the audit log has it exactly; without it, the
// time at which the plan was written is tried too. The error is fault.Missing if no command matches.
func ReproduceReplacement(snapshot planning.Snapshot, cat catalog.Catalogue, plan planning.Plan, planRef event.Ref, written time.Time) (Reproduction, disruption.Command, error) {
	stock := instancetypes.New(snapshot, cat)
	var first Reproduction
	var command disruption.Command
	isFound := false
	for _, at := range []time.Time{snapshot.TakenAt, written} {
		snapshot.TakenAt = at
		for _, c := range disruption.Evaluate(snapshot, stock, disruption.Options{}).Commands {
			if c.Since.IsZero() {
				continue // Only a proposal that was made before has a plan.
			}
			built, err := launchspec.Replace(c.Proposal, snapshot, plan.Batch, c.Result, cat)
			if err != nil {
				return Reproduction{}, c, fmt.Errorf("planning the replacements of proposal %s again: %w", c.Proposal, err)
			}
			got, err := compare(built.Plan, plan, planRef)
			if err != nil {
				return Reproduction{}, c, err
			}
			got.Catalogue = refKey(snapshot.Catalogue)
			if got.IsReproduced {
				return got, c, nil
			}
			if !isFound && sharesClaim(built.Plan, plan) {
				first, command, isFound = got, c, true
			}
		}
	}
	if !isFound {
		return Reproduction{}, command, fault.F("reproducing "+planRef.Key(), fault.Missing, "disruption makes no such plan from %s", plan.Batch.Key()).
			WithHint("the time of the decision, which is only in the audit log, or the version of disruption differs")
	}
	return first, command, nil
}

// sharesClaim reports whether two plans launch a NodeClaim of the same name.
func sharesClaim(a, b planning.Plan) bool {
	names := map[string]bool{}
	for _, name := range claimNames(a) {
		names[name] = true
	}
	return slices.ContainsFunc(claimNames(b), func(name string) bool { return names[name] })
}

func claimNames(p planning.Plan) (out []string) {
	for i := range p.Intents {
		for j := range p.Intents[i].Claims {
			out = append(out, p.Intents[i].Claims[j].Object.Name)
		}
	}
	return out
}

// compare compares a plan with the recorded one, whose reference is the digest of its bytes.
func compare(made, recorded planning.Plan, ref event.Ref) (Reproduction, error) {
	out := Reproduction{Plan: ref.Key(), Input: recorded.Batch.Key(), Differences: []string{}}
	got, _, err := blob.Encode(planning.PlanKind, made)
	if err != nil {
		return out, err
	}
	if out.IsReproduced = got == ref; out.IsReproduced {
		return out, nil
	}
	differences, err := findDifferences(recorded, made)
	if err != nil {
		return out, err
	}
	if len(differences) == 0 {
		out.Differences = append(out.Differences, "the decision is the same, but the documents are encoded differently: another version made the recorded plan")
		return out, nil
	}
	out.Differences = append(differences, "batch and catalogue are the recorded ones, so another version made the recorded plan")
	return out, nil
}

// findDifferences returns the first differences between the JSON of two documents.
func findDifferences(recorded, made any) ([]string, error) {
	a, err := toJSONValue(recorded)
	if err != nil {
		return nil, err
	}
	b, err := toJSONValue(made)
	if err != nil {
		return nil, err
	}
	var out []string
	diffValues("", a, b, &out)
	if more := len(out) - differencesMax; more > 0 {
		out = append(out[:differencesMax], fmt.Sprintf("and %d more differences", more))
	}
	return out, nil
}

func toJSONValue(doc any) (value any, err error) {
	text, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return nil, fault.E("comparing documents", fault.Bug, err)
	}
	return value, nil
}

// diffValues appends the differences below a path.
func diffValues(path string, a, b any, out *[]string) {
	switch was := a.(type) {
	case map[string]any:
		if is, ok := b.(map[string]any); ok {
			keys := maps.Clone(was)
			maps.Copy(keys, is)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				diffValues(joinPath(path, key), was[key], is[key], out)
			}
			return
		}
	case []any:
		if is, ok := b.([]any); ok && len(was) == len(is) {
			for i := range was {
				diffValues(path+"["+strconv.Itoa(i)+"]", was[i], is[i], out)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*out = append(*out, fmt.Sprintf("%s: recorded %s, now %s", path, shortJSON(a), shortJSON(b)))
	}
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shortJSON returns the begin of a value's JSON; lists are counted.
func shortJSON(value any) string {
	const lengthMax = 60
	switch v := value.(type) {
	case nil:
		return "nothing"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	if len(text) > lengthMax {
		return string(text[:lengthMax]) + "…"
	}
	return string(text)
}

func refKey(ref event.Ref) string {
	if ref.IsZero() {
		return ""
	}
	return ref.Key()
}
