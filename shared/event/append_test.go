package event

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyText draws text that often needs escaping.
func anyText(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9./-]{0,12}`), rapid.String(), rapid.SampledFrom([]string{"<&>", "a\u2028b", "\"\\", "\x00", "\xff"})).Draw(t, label)
}

func anyTime(t *rapid.T, label string) time.Time {
	if rapid.Bool().Draw(t, label+" is zero") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(-1e11, 3e11).Draw(t, label), rapid.Int64Range(0, 999_999_999).Draw(t, label+" ns")).UTC()
}

// same requires the same bytes, and the same failures, as encoding/json.
func same(t *rapid.T, value any, got []byte, err error) {
	want, wantErr := json.Marshal(value)
	if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
		t.Fatalf("got  %s (%v)\nwant %s (%v)", got, err, want, wantErr)
	}
}

func TestNodeNoticedIsWrittenAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NodeNoticed{
			Kind: NoticeKind(anyText(t, "kind")), InstanceID: anyText(t, "id"), Deadline: anyTime(t, "deadline"), Noticed: anyTime(t, "noticed"),
			Detail: anyText(t, "detail"),
			Offering: Offering{
				InstanceType: anyText(t, "type"), Zone: anyText(t, "zone"), CapacityType: anyText(t, "capacity"),
			},
		}
		got, err := b.appendJSON(nil)
		same(t, b, got, err)
	})
}

// AppendNew appends the bytes of New and Encode to the given ones.
func TestAppendIsNewAndEncode(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		maker := Maker{Service: anyText(t, "service"), Cluster: Cluster{Name: anyText(t, "cluster"), UID: anyText(t, "uid")}}
		id := anyText(t, "id")
		body := rapid.SampledFrom([]InstanceBody{
			NodeNoticed{Kind: SpotInterruption, InstanceID: id, Noticed: anyTime(t, "noticed"), Detail: anyText(t, "detail")},
			NodeNoticed{Kind: SpotInterruption, InstanceID: id, Noticed: at, Detail: strings.Repeat("d", 17<<10)},
			InstanceGone{InstanceID: id, Shown: anyTime(t, "shown")},
		}).Draw(t, "body")
		got, correlation, err := maker.AppendNew([]byte("before"), at, body)
		e, wantErr := maker.New(at, body, nil)
		var want []byte
		if wantErr == nil {
			want, wantErr = e.Encode()
		}
		if (err == nil) != (wantErr == nil) || err == nil && (string(got) != "before"+string(want) || correlation != e.Correlation) {
			t.Fatalf("got  %s, %s (%v)\nwant %s, %s (%v)", got, correlation, err, want, e.Correlation, wantErr)
		}
	})
}

func TestInstanceGoneIsWrittenAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := InstanceGone{InstanceID: anyText(t, "id"), Shown: anyTime(t, "shown")}
		got, err := b.appendJSON(nil)
		same(t, b, got, err)
	})
}

func BenchmarkAppend(b *testing.B) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	body := NodeNoticed{
		Kind: SpotInterruption, InstanceID: "i-0123456789abcdef0", Noticed: at, Deadline: at.Add(time.Minute), Detail: "terminate",
		Offering: Offering{InstanceType: "m6i.large", Zone: "us-west-2a", CapacityType: "spot"},
	}
	maker := Maker{Service: "interruption", Cluster: Cluster{Name: "web"}}
	out := make([]byte, 0, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := maker.AppendNew(out, at, body); err != nil {
			b.Fatal(err)
		}
	}
}
