package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// hostileValues are values that a reader may not expect in any field. The live names of the cluster are added.
var hostileValues = []any{
	"", " ", "\x00", "\x1b[2J\r\n", "a\tb\u202e", "../../intents/x", "..", "/", "*", "%s%n", "{{.}}", "<!--", "'; --", "\"", "\\u0000", strings.Repeat("x", 300),
	strings.Repeat("é", 5000), "-1", "1e309", "true", "null", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2026-13-01", "demo-2", "other",
	nil, true, false, 0, -1, 1, 1 << 53, -1e300, 1e300, 0.0000001, []any{}, map[string]any{}, []any{nil}, []any{"x", 1, nil}, map[string]any{"": nil, "a/b": []any{}},
}

// mutate changes some values inside a decoded JSON document, at random places. live are names from the cluster.
func mutate(random *rand.Rand, document any, live []any, changes int) any {
	for range changes {
		document = mutateOnce(random, document, live, 0)
	}
	return document
}

func mutateOnce(random *rand.Rand, value any, live []any, depth int) any { //nolint:gocyclo // one case for each mutation
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		switch {
		case len(keys) == 0 || depth > 0 && random.IntN(12) == 0:
		case random.IntN(12) == 0:
			delete(v, keys[random.IntN(len(keys))])
			return v
		case random.IntN(20) == 0:
			v[strings.ToUpper(keys[random.IntN(len(keys))])] = hostileValue(random, live)
			return v
		default:
			key := keys[random.IntN(len(keys))]
			v[key] = mutateOnce(random, v[key], live, depth+1)
			return v
		}
	case []any:
		switch {
		case len(v) == 0 || random.IntN(12) == 0:
		case random.IntN(6) == 0:
			return append(v, v[random.IntN(len(v))])
		case random.IntN(6) == 0:
			i := random.IntN(len(v))
			return slices.Delete(v, i, i+1)
		case random.IntN(40) == 0:
			return slices.Repeat(v, 1+random.IntN(200/len(v)+1))
		default:
			i := random.IntN(len(v))
			v[i] = mutateOnce(random, v[i], live, depth+1)
			return v
		}
	case float64:
		return pick(random, []any{-v, v * 1000, v + 1, 0, v - 1, v / 3, "x"})
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			shift := pick(random, []time.Duration{-time.Hour, -time.Minute, time.Second, time.Minute, time.Hour, 1000 * time.Hour, -100000 * time.Hour})
			return at.Add(shift).Format(time.RFC3339Nano)
		}
	}
	return hostileValue(random, live)
}

func hostileValue(random *rand.Rand, live []any) any {
	if len(live) > 0 && random.IntN(2) == 0 {
		return live[random.IntN(len(live))]
	}
	return pick(random, hostileValues)
}
