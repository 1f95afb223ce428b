package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// valid returns a valid message as a map, for tests that corrupt one field.
func valid(t testing.TB) map[string]any {
	t.Helper()
	e, err := maker.New(noon, event.InventoryWanted{Asked: noon}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func with(t testing.TB, key string, value any) []byte {
	t.Helper()
	fields := valid(t)
	fields[key] = value
	if value == nil {
		delete(fields, key)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// hostile returns malformed messages and a part of the expected error.
func hostile(t testing.TB) map[string]struct {
	data []byte
	want string
} {
	t.Helper()
	good := string(with(t, "subject", "x"))
	endless := `{"specversion":"1.0","id":"x","source":"s","type":"tick.v1","cluster":"c","time":"9999-12-31T23:59:59Z","data":{}}`
	type row = struct {
		data []byte
		want string
	}
	return map[string]row{
		"empty":             {nil, "not JSON"},
		"null":              {[]byte("null"), "name.vN"},
		"array":             {[]byte("[]"), "want event.Envelope"},
		"number":            {[]byte("7"), "want event.Envelope"},
		"cut off":           {[]byte(good[:len(good)-1]), "not JSON"},
		"huge":              {with(t, "subject", strings.Repeat("x", event.MaxEnvelope)), "exceed the limit"},
		"deep":              {with(t, "extra", json.RawMessage(strings.Repeat("[", 40)+strings.Repeat("]", 40))), "deeper than"},
		"many tokens":       {with(t, "extra", json.RawMessage("[0"+strings.Repeat(",0", event.MaxTokens)+"]")), "more than 100000 JSON tokens"},
		"not UTF-8":         {bytes.Replace([]byte(good), []byte(`"subject":"x"`), []byte("\"subject\":\"\xff\""), 1), "not UTF-8"},
		"duplicate":         {[]byte(strings.Replace(good, `"subject":"x"`, `"id":"other"`, 1)), `the name "id" twice`},
		"nested duplicate":  {with(t, "data", json.RawMessage(`{"asked":"2026-01-01T00:00:00Z","asked":"2027-01-01T00:00:00Z"}`)), "twice"},
		"duplicate in list": {with(t, "extra", json.RawMessage(`[{"a":[],"b":{},"a":1}]`)), "twice"},
		"other spelling":    {[]byte(strings.Replace(good, `"subject":"x"`, `"ID":"other"`, 1)), `to be spelled "id"`},
		"two values":        {[]byte(good + good), "after top-level value"},
		"rubbish behind":    {[]byte(good + "x"), "not JSON"},
		"wrong major":       {with(t, "type", "plan.made.v2"), "this service knows 1"},
		"no major":          {with(t, "type", "plan.made"), "name.vN"},
		"unknown type":      {with(t, "type", "coffee.made.v1"), "no message type of Joist"},
		"wrong specversion": {with(t, "specversion", "0.3"), "specversion"},
		"no id":             {with(t, "id", nil), "id has 0"},
		"long id":           {with(t, "id", strings.Repeat("x", 129)), "id has 129"},
		"no source":         {with(t, "source", nil), "source is missing"},
		"no cluster":        {with(t, "cluster", nil), "cluster is missing"},
		"no time":           {with(t, "time", nil), "time is missing"},
		"no data":           {with(t, "data", nil), "data is missing"},
		"no expires":        {with(t, "expires", nil), "less than 2m0s"},
		"short life":        {with(t, "expires", noon.Add(event.MinTTL-time.Nanosecond)), "less than 2m0s"},
		"endless tick":      {[]byte(endless), "expires in the year 10000"},
		"large data":        {with(t, "data", map[string]string{"x": strings.Repeat("x", 5<<10)}), "and the type allows 4096"},
		"wrong kind":        {with(t, "id", 7), `field "id"`},
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, row := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			e, err := event.Decode(row.data)
			if !fault.Is(err, fault.Poison) {
				t.Fatalf("the error is %v (%s), want poison", err, fault.KindOf(err))
			}
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error %q does not say %q", err, row.want)
			}
			if e.ID != "" {
				t.Errorf("an envelope came with the error: %+v", e)
			}
		})
	}
}

// For any bytes, Decode returns an envelope that re-encodes unchanged, or Poison.
func FuzzDecode(f *testing.F) {
	for _, row := range hostile(f) {
		f.Add(row.data)
	}
	for _, s := range samples {
		e, err := maker.New(noon, s.body, nil)
		if err != nil {
			f.Fatal(err)
		}
		text, err := e.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := event.Decode(data)
		if err != nil {
			if !fault.Is(err, fault.Poison) {
				t.Fatalf("%s: %v", fault.KindOf(err), err)
			}
			return
		}
		once, err := e.Encode()
		if err != nil {
			t.Fatalf("the decoded envelope cannot be encoded: %v", err)
		}
		if len(once) > event.MaxEnvelope {
			t.Skip("escaping made it too large to be passed on")
		}
		again, err := event.Decode(once)
		if err != nil {
			t.Fatalf("the encoded envelope cannot be decoded: %v\n%s", err, once)
		}
		if again.ID != e.ID || again.Type != e.Type || again.Cluster != e.Cluster || !again.Expires.Equal(e.Expires) {
			t.Fatalf("the envelope changed on its way: %+v, then %+v", e, again)
		}
		for _, s := range samples {
			if s.body.EventType() != e.Type {
				continue
			}
			if _, err := s.read(e); err != nil && !fault.Is(err, fault.Poison) {
				t.Fatalf("reading the body: %v", err)
			}
		}
	})
}

func TestUnknownAttributesAreKept(t *testing.T) {
	data := with(t, "partitionkey", map[string]any{"deep": []int{1, 2}})
	e, err := event.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, err := event.Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := again.Encode(); err != nil || !bytes.Equal(out, twice) {
		t.Errorf("a second hop changed it (%v):\n%s\n%s", err, out, twice)
	}
}

// EventBridge Scheduler's template can insert the time and nothing else.
func TestTickNeedsNoExpiry(t *testing.T) {
	text := fmt.Sprintf(`{"specversion":"1.0","id":"x","source":"scheduler","type":"tick.v1","time":%q,"cluster":"prod",`+
		`"data":{"want":"status","due":%q}}`, noon.Format(time.RFC3339), noon.Format(time.RFC3339))
	e, err := event.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := noon.Add(2 * time.Minute); !e.Expires.Equal(want) {
		t.Errorf("the tick expires at %s, want %s", e.Expires, want)
	}
	if _, err := event.DecodeBody[event.Tick](e); err != nil {
		t.Error(err)
	}
}

func TestAs(t *testing.T) {
	e, err := event.Decode(with(t, "subject", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := event.DecodeBody[event.PlanMade](e); !fault.Is(err, fault.Bug) {
		t.Errorf("reading another type's body: %v, want a bug", err)
	}
	for name, data := range map[string]string{"wrong kind": `{"asked":7}`, "array": `[]`, "empty": `{}`, "null": `null`} {
		e.Data = json.RawMessage(data)
		if _, err := event.DecodeBody[event.InventoryWanted](e); !fault.Is(err, fault.Poison) {
			t.Errorf("%s: %v, want poison", name, err)
		}
	}
}
