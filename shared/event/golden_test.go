package event_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/event"
)

var update = flag.Bool("update", false, "write missing goldens; existing ones are never edited")

// Every type has one golden file: old messages must be readable forever.
func TestGoldens(t *testing.T) {
	byType := map[event.Type]sample{}
	for _, s := range samples {
		byType[s.body.EventType()] = s
	}
	for _, spec := range event.Specs {
		t.Run(string(spec.Type), func(t *testing.T) {
			s, ok := byType[spec.Type]
			if !ok {
				t.Fatal("the type has no sample body")
			}
			keeps(t, filepath.Join("testdata", "v1", string(spec.Type)+".json"), s)
		})
	}
	if len(samples) != len(event.Specs) {
		t.Errorf("there are %d samples for %d types", len(samples), len(event.Specs))
	}
}

// Fields added to a type later have their own golden files.
func TestFurtherGoldens(t *testing.T) {
	for name, s := range further {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(name, string(s.body.EventType())+"-") {
				t.Fatalf("it is a %s", s.body.EventType())
			}
			keeps(t, filepath.Join("testdata", "v1-further", name+".json"), s)
		})
	}
}

// keeps requires that a golden file decodes to the body that it was written from, and re-encodes unchanged.
func keeps(t *testing.T, path string, s sample) {
	t.Helper()
	made, err := maker.New(noon, s.body, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := golden(t, path, made)
	e, err := event.Decode(text[:len(text)-1])
	if err != nil {
		t.Fatal(err)
	}
	body, err := s.read(e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.body, body); diff != "" {
		t.Errorf("the golden no longer reads as what it was written from (-sample +golden):\n%s", diff)
	}
	if diff := cmp.Diff(string(text), string(wire(t, e))); diff != "" {
		t.Errorf("decoding and encoding again changed bytes:\n%s", diff)
	}
	if made.ID != e.ID {
		t.Errorf("the id is %s now and was %s: a re-send across an upgrade would be another event", made.ID, e.ID)
	}
}

// golden reads a golden file; with -update it writes a missing one.
func golden(t *testing.T, path string, made event.Envelope) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *update {
		text = wire(t, made)
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatalf("%v (try: go test ./event -run Goldens -update)", err)
	}
	return text
}

// wire returns the encoded envelope and a final newline for editors.
func wire(t *testing.T, e event.Envelope) []byte {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// No golden file is of an unknown type.
func TestNoGoldenWithoutType(t *testing.T) {
	files, err := filepath.Glob("testdata/v1/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if _, err := event.Type(name[:len(name)-len(".json")]).Spec(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
