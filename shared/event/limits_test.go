package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// slowly is CheckLimits and checkNames implemented with the tokens of encoding/json: whether the bytes are within the
// limits, and whether an object has a name twice.
func slowly(data []byte) (within, twice bool) {
	if len(data) > MaxEnvelope || !utf8.Valid(data) || !json.Valid(data) {
		return false, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var levels []map[string]bool
	var named []bool
	var before json.Token
	for tokens := 0; ; tokens++ {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return tokens <= MaxTokens, twice
		}
		last := len(levels) - 1
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			if before == json.Delim('{') || before == json.Delim('[') {
				tokens++ // An empty list or object counts as three tokens.
			}
			levels, named = levels[:last], named[:last]
			before = token
			continue
		case last >= 0 && levels[last] != nil && !named[last]:
			name := token.(string)
			twice = twice || levels[last][name]
			levels[last][name], named[last] = true, true
			before = token
			continue
		case last >= 0:
			named[last] = false
		}
		switch before = token; token {
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

var texts = []string{
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
	within, twice := slowly(data)
	if err := CheckLimits(data); (err == nil) != within || err != nil && !fault.Is(err, fault.Poison) {
		t.Fatalf("CheckLimits: %v; within the limits: %t", err, within)
	}
	if !within {
		return
	}
	trimmed := bytes.TrimSpace(data)
	if err := checkNames(trimmed); (err == nil) != !twice {
		t.Fatalf("checkNames: %v; a name twice: %t", err, twice)
	}
	list, members := SplitJSON(trimmed, '[', nil), SplitJSON(trimmed, '{', nil)
	var wantList, gotList []json.RawMessage
	var wantObject map[string]json.RawMessage
	gotObject := map[string]json.RawMessage{}
	_ = json.Unmarshal(data, &wantList) // It stays empty if the value is no list.
	_ = json.Unmarshal(data, &wantObject)
	for _, element := range list {
		gotList = append(gotList, element)
	}
	for i := 0; i < len(members); i += 2 {
		var name string
		if err := json.Unmarshal(members[i], &name); err != nil {
			t.Fatalf("the name %s: %v", members[i], err)
		}
		gotObject[name] = members[i+1]
	}
	if diff := cmp.Diff(wantList, gotList, cmpopts.EquateEmpty()) + cmp.Diff(wantObject, gotObject, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-encoding/json +SplitJSON):\n%s", diff)
	}
}

func TestLimitsAgreeWithJSON(t *testing.T) {
	for _, text := range texts {
		t.Run(fmt.Sprintf("%.40q", text), func(t *testing.T) { agree(t, []byte(text)) })
	}
}

func FuzzLimitsAgreeWithJSON(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(agree)
}

func TestSplitJSON(t *testing.T) {
	for _, tt := range []struct {
		text    string
		bracket byte
		want    []string
	}{
		{`[ "a" , {"b":[1]},[2,3],"]\\" ]`, '[', []string{`"a"`, `{"b":[1]}`, `[2,3]`, `"]\\"`}},
		{`{ "a" : [1, 2], "\u0061":{"b":"c"}, "\"}": -1}`, '{', []string{`"a"`, `[1, 2]`, `"\u0061"`, `{"b":"c"}`, `"\"}"`, `-1`}},
		{`[ ]`, '[', nil}, {`{ }`, '{', nil}, {`"a,b"`, '[', nil}, {`{"a":["b"]}`, '[', nil}, {`["a","b"]`, '{', nil}, {`null`, '[', nil}, {``, '[', nil},
	} {
		var got []string
		for _, part := range SplitJSON([]byte(tt.text), tt.bracket, nil) {
			got = append(got, string(part))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}
