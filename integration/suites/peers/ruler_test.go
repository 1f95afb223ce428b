package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/queue/eventpattern"
	"github.com/joist-autoscaler/joist/shared/queue/eventpattern/patterntest"
)

// ruler is a process of AWS's event-ruler, which answers each line with a line.
type ruler struct {
	in  io.Writer
	out *bufio.Scanner
}

func startRuler(t *testing.T, at installed) ruler {
	t.Helper()
	cmd := exec.Command("java", "-cp", at.classes, "Ask")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("event-ruler failed: %v", err)
		}
	})
	return ruler{in, bufio.NewScanner(out)}
}

// ask returns "match", "no match", or "refused: …".
func (r ruler) ask(pattern, event string) (string, error) {
	line, err := json.Marshal(map[string]string{"pattern": pattern, "event": event})
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(r.in, "%s\n", line); err != nil {
		return "", err
	}
	if !r.out.Scan() {
		return "", fmt.Errorf("event-ruler has ended: %w", r.out.Err())
	}
	return r.out.Text(), nil
}

// ours returns package eventpattern's answer in the same form.
func ours(pattern, event string) string {
	compiled, err := eventpattern.Compile([]byte(pattern))
	if err != nil {
		return "refused: " + err.Error()
	}
	matches, err := compiled.Match([]byte(event))
	switch {
	case err != nil:
		return "broken: " + err.Error()
	case matches:
		return "match"
	}
	return "no match"
}

// stripReason removes the reason why a pattern is rejected, because the texts differ.
func stripReason(answer string) string {
	word, _, _ := strings.Cut(answer, ":")
	return word
}

// TestRuler compares event-ruler with Joist's own tests of patterns.
func TestRuler(t *testing.T) {
	at := peers(t)
	t.Parallel()
	r := startRuler(t, at)
	agree := func(name, pattern, want string) {
		t.Run(name, func(t *testing.T) {
			got, err := r.ask(pattern, patterntest.Notice)
			if err != nil {
				t.Fatal(err)
			}
			if stripReason(got) != want {
				t.Errorf("%s: %s; Joist gives %s", pattern, got, want)
			}
		})
	}
	for _, test := range patterntest.Cases {
		agree("case "+test.Name, test.Pattern, map[bool]string{true: "match", false: "no match"}[test.Want])
	}
	for _, test := range patterntest.Refusals {
		agree("refusal "+test.Says, test.Pattern, "refused")
	}
	for _, corner := range corners {
		t.Run("corner "+corner.name, func(t *testing.T) {
			theirs, err := r.ask(corner.pattern, corner.event)
			if err != nil {
				t.Fatal(err)
			}
			if mine := ours(corner.pattern, corner.event); stripReason(mine) != stripReason(theirs) {
				t.Errorf("Joist gives %q, event-ruler gives %q", mine, theirs)
			}
		})
	}
	t.Run("random patterns and events", func(t *testing.T) {
		counts := map[string]int{}
		rapid.Check(t, func(t *rapid.T) {
			pattern := drawPattern(t)
			for range 5 {
				event := drawEvent(t)
				theirs, err := r.ask(pattern, event)
				if err != nil {
					t.Fatal(err)
				}
				counts[stripReason(theirs)]++
				if mine := ours(pattern, event); stripReason(mine) != stripReason(theirs) {
					t.Fatalf("%s on %s: Joist gives %q, event-ruler gives %q", pattern, event, mine, theirs)
				}
			}
		})
		t.Logf("random patterns and events on which both agree: %v", counts)
		for _, each := range []string{"match", "no match"} {
			if counts[each] < 100 {
				t.Errorf("fewer than 100 random pairs give %q: %v", each, counts)
			}
		}
	})
}
