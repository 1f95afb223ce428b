package differential

import (
	"bytes"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestRepeat plans more than a thousand random scenarios twice, and once more with the
// pods in another order: the bytes are the same. The order in the file matters only
// because it determines the pods' UIDs.
func TestRepeat(t *testing.T) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := written(drawn(t, g.on))
				first := planBytes(t, text, nil)
				if again := planBytes(t, text, nil); !bytes.Equal(first, again) {
					t.Fatalf("two plans of the same scenario:\n%s\n%s\nscenario: %s", first, again, text)
				}
				cut := rapid.IntRange(0, podsMax).Draw(t, "cut")
				shuffled := planBytes(t, text, func(pods []*corev1.Pod) {
					slices.Reverse(pods[:min(cut, len(pods))])
					slices.Reverse(pods)
				})
				if !bytes.Equal(first, shuffled) {
					t.Fatalf("another plan when the pods arrive in another order:\n%s\n%s\nscenario: %s", first, shuffled, text)
				}
			})
		})
	}
}

func planBytes(t fataler, text []byte, shuffle func([]*corev1.Pod)) []byte {
	t.Helper()
	plan, err := ours(text, shuffle)
	if err != nil {
		t.Fatalf("%v\nscenario: %s", err, text)
	}
	return plan
}
