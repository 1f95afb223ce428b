package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// slowly is CheckLimits implemented with encoding/json: whether it accepts the bytes, and whether a name is repeated.
func slowly(data []byte) (taken, twice bool) {
	if len(data) > MaxEnvelope || !utf8.Valid(data) || !json.Valid(data) {
		return false, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var levels []map[string]bool
	var named []bool
	for tokens := 0; ; tokens++ {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return tokens <= MaxTokens, twice
		}
		last := len(levels) - 1
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			levels, named = levels[:last], named[:last]
			continue
		case last >= 0 && levels[last] != nil && !named[last]:
			name := token.(string)
			twice = twice || levels[last][name]
			levels[last][name], named[last] = true, true
			continue
		case last >= 0:
			named[last] = false
		}
		switch token {
		case json.Delim('{'):
			levels, named = append(levels, map[string]bool{}), append(named, false)
		case json.Delim('['):
			levels, named = append(levels, nil), append(named, false)
		}
		if len(levels) > MaxDepth {
			return false, false
		}
	}
}

var scanned = []string{
	"", " ", "null", "true", "fals", "nul", "0", "-0", "-", "01", "1.", "1.5e+3", "1e", "1E-7", "+1", ".5", `""`, `"`, `"\`, `"\"`, `"\u12"`, `"\u12G4"`,
	`"\ud800"`, "\"\x1f\"", "\"\x7f\"", `"\x"`, `"<&>"`, "[]", "[ ]", "[,]", "[1,]", "[1 2]", "[1,2", "{}", "{ }", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`,
	`{a:1}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1},"b":{"b":[]}}`, "{} {}", "{}x", "\ufeff{}", " [ 1 , { \"a\" : null } ] \n", "{\"\xff\":1}",
	strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
	`{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0}`, `{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"8":0}`,
	`{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"9":0}`, `{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"1":0}`,
	"[" + strings.Repeat("0,", MaxTokens-3) + "0]", "[" + strings.Repeat("0,", MaxTokens-2) + "0]",
}

func agree(t *testing.T, data []byte) {
	t.Helper()
	taken, twice := slowly(data)
	if err := CheckLimits(data); (err == nil) != (taken && !twice) || err != nil && !fault.Is(err, fault.Poison) {
		t.Fatalf("CheckLimits says %v; encoding/json takes it: %t, a name twice: %t", err, taken, twice)
	}
	members, err := Members(data, nil)
	var object map[string]json.RawMessage
	if !taken || json.Unmarshal(data, &object) != nil || object == nil {
		if err == nil {
			t.Fatalf("%d members of what is no object", len(members))
		}
		return
	}
	got := map[string]json.RawMessage{}
	for _, m := range members {
		got[string(m.Name)] = m.Value
	}
	if diff := cmp.Diff(object, got); err != nil || diff != "" {
		t.Fatalf("%v (-encoding/json +Members):\n%s", err, diff)
	}
}

func TestScanAgreesWithJSON(t *testing.T) {
	for _, text := range scanned {
		t.Run(fmt.Sprintf("%.40q", text), func(t *testing.T) { agree(t, []byte(text)) })
	}
}

func FuzzScanAgreesWithJSON(f *testing.F) {
	for _, text := range scanned {
		f.Add([]byte(text))
	}
	f.Fuzz(agree)
}

func TestMembersKeepsRepeatedNames(t *testing.T) {
	members, err := Members([]byte(` {"a": [1, 2], "\u0061":{"b":"c"} }`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members {
		got = append(got, string(m.Name)+"="+string(m.Value))
	}
	if diff := cmp.Diff([]string{"a=[1, 2]", `a={"b":"c"}`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestElements(t *testing.T) {
	for list, want := range map[string][]string{
		`[ "a" , {"b":[1]},[2,3] ]`: {`"a"`, `{"b":[1]}`, `[2,3]`}, `[]`: nil, `"a"`: nil, `{"a":["b"]}`: nil, `null`: nil, `[1`: nil, ``: nil,
	} {
		var got []string
		for _, e := range Elements([]byte(list), nil) {
			got = append(got, string(e))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}
