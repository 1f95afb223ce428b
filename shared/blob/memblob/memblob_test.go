package memblob

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestRetention(t *testing.T) {
	now := epoch
	s := New(Options{Now: func() time.Time { return now }, Retention: time.Hour})
	for _, key := range []string{"plans/b", "plans/a"} {
		if err := s.Put(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Hour - 1)
	if err := s.Put(t.Context(), "plans/a", []byte("anew")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"plans/a", "plans/b"}, s.ListKeys()); diff != "" {
		t.Error(diff)
	}
	now = now.Add(1)
	if _, err := s.Get(t.Context(), "plans/b"); !fault.Is(err, fault.Missing) {
		t.Errorf("after its retention: %v", err)
	}
	if diff := cmp.Diff([]string{"plans/a"}, s.ListKeys()); diff != "" {
		t.Error(diff)
	}
	s.RemoveKey("plans/a")
	if len(s.ListKeys()) != 0 {
		t.Errorf("keys after all objects were removed: %v", s.ListKeys())
	}
}

// A burst of 503 lasts for seconds or minutes, also for calls that begin none.
func TestSlowDown(t *testing.T) {
	now := epoch
	s := New(Options{Now: func() time.Time { return now }, Seed: 7, Faults: Faults{SlowDown: 1e-9}})
	failed := func(calls int) (n int) {
		for range calls {
			if err := s.Put(t.Context(), "k", nil); fault.Is(err, fault.Throttled) {
				n++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if n := failed(100); n != 0 {
		t.Fatalf("%d calls failed before a burst", n)
	}
	s.SetFaults(Faults{SlowDown: 1})
	failed(1)
	s.SetFaults(Faults{SlowDown: 1e-9})
	if n := failed(100); n < 70 || n == 100 {
		t.Errorf("%d of 100 calls failed in a burst", n)
	}
	if now = now.Add(MaxBurst); failed(100) != 0 {
		t.Error("the burst did not end")
	}
	if got := s.Counts(); got[BurstBegun] != 1 || got[SlowedDown] < 70 {
		t.Errorf("%v", got)
	}
	s.SetFaults(Faults{SlowDown: 1})
	failed(1)
	s.SetFaults(Faults{})
	if failed(100) != 0 {
		t.Error("a call failed after the faults were disabled")
	}
}

// Each fault alone, with probability 1, has its effect and is counted.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault         Fault
		faults        Faults
		put, get, ask fault.Kind
		count         int
		data          string
	}{
		{PutFailed, Faults{FailPut: 1}, fault.Retry, fault.Missing, fault.Missing, 1, ""},
		{PutAnswerLost, Faults{LosePutAnswer: 1}, fault.Unknown, "", "", 1, "x"},
		{GetFailed, Faults{FailGet: 1}, "", fault.Retry, "", 1, ""},
		{WrittenFailed, Faults{FailWritten: 1}, "", "", fault.Retry, 1, "x"},
		{Hidden, Faults{Missing: 1}, "", fault.Missing, fault.Missing, 2, ""},
		{Corrupted, Faults{Corrupt: 1}, "", "", "", 1, "other"},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			s := New(Options{Now: func() time.Time { return epoch }, Seed: 7, Faults: test.faults})
			put := s.Put(t.Context(), "k", []byte("x"))
			data, get := s.Get(t.Context(), "k")
			_, ask := s.LastWritten(t.Context(), "k")
			kinds := []fault.Kind{fault.KindOf(put), fault.KindOf(get), fault.KindOf(ask)}
			if diff := cmp.Diff([]fault.Kind{test.put, test.get, test.ask}, kinds); diff != "" {
				t.Error(diff)
			}
			if text := string(data); text != test.data && (test.data != "other" || text == "x") {
				t.Errorf("read %q, want %q", text, test.data)
			}
			if diff := cmp.Diff(map[Fault]int{test.fault: test.count}, s.Counts()); diff != "" {
				t.Error(diff)
			}
			s.SetFaults(Faults{})
			if err := s.Put(t.Context(), "k", nil); err != nil {
				t.Errorf("without the fault: %v", err)
			}
		})
	}
}
