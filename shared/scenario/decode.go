package scenario

import (
	"bytes"
	gojson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/json"
)

// decode decodes JSON into a value. It returns notes about unknown fields, and adds problems for
// errors.
func decode(file string, data []byte, into any, problems *Problems) (notes []string) {
	unknown, err := json.UnmarshalStrict(data, into)
	if err != nil {
		diagnose(file, data, into, err, problems)
		return nil
	}
	for _, one := range unknown {
		notes = append(notes, file+": "+one.Error()+" is ignored")
	}
	return notes
}

// diagnose finds where the data is invalid. It decodes the data again with slower decoders that report
// the place.
func diagnose(file string, data []byte, into any, cause error, problems *Problems) {
	if broken, offset := json.SyntaxErrorOffset(cause); broken {
		problems.add(place(file, data, offset), "", "invalid JSON: %s", strings.TrimPrefix(cause.Error(), "json: "))
		return
	}
	var tree any
	if json.UnmarshalCaseSensitivePreserveInts(data, &tree) == nil {
		before := len(problems.List)
		quantities(file, "", "", tree, problems)
		if len(problems.List) > before {
			return
		}
	}
	wrong := (*gojson.UnmarshalTypeError)(nil)
	if errors.As(gojson.Unmarshal(data, into), &wrong) {
		problems.add(file, pathAt(data, wrong.Offset), "%s found, expected %s", wrong.Value, expected(wrong))
		return
	}
	problems.add(file, "", "cannot read the file: %v", cause)
}

// place returns the file's name with the line and the column of an offset.
func place(file string, data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("%s:%d:%d", file, line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// expected returns the JSON type that a field needs.
func expected(wrong *gojson.UnmarshalTypeError) string {
	switch kind := wrong.Type.Kind().String(); {
	case kind == "struct" || kind == "map":
		return "an object"
	case kind == "slice":
		return "a list"
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a text in quotes"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	default:
		return "a number"
	}
}

// amounts are the fields whose values are quantities.
var amounts = []string{"requests", "limits", "capacity", "overhead", "allocatable"}

// quantities adds problems for invalid quantities below a field.
func quantities(file, path, field string, value any, problems *Problems) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			quantities(file, fmt.Sprintf("%s[%d]", path, i), "", item, problems)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := key
			if path != "" {
				below = path + "." + key
			}
			text, isText := value[key].(string)
			if !isText || !slices.Contains(amounts, field) {
				quantities(file, below, key, value[key], problems)
				continue
			}
			if _, err := resource.ParseQuantity(text); err != nil {
				problems.add(file, below, "%q is not a quantity: write a number with an optional suffix, such as 500m, 2 or 4Gi", text)
			}
		}
	}
}

// pathAt returns the path of the value that ends at or contains an offset.
func pathAt(data []byte, offset int64) string {
	var at walk
	tokens := gojson.NewDecoder(bytes.NewReader(data))
	for {
		token, err := tokens.Token()
		if err != nil {
			return at.String()
		}
		at.enter(token)
		if tokens.InputOffset() >= offset {
			return at.String()
		}
		at.leave(token)
	}
}
