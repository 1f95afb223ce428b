package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRecordingIsCurrent fails if the demo prints something else than the recording shows.
func TestRecordingIsCurrent(t *testing.T) {
	lines, err := runDemo()
	if err != nil {
		t.Fatal(err)
	}
	want := draw(lines)
	got, err := os.ReadFile(drawingPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("demo.svg shows another output (-want +got); try: cd integration && go generate ./bench/figures/recording\n%s", diff)
	}
	const sizeMax = 64 << 10
	if len(want) > sizeMax {
		t.Errorf("the recording has %d bytes, more than %d", len(want), sizeMax)
	}
	if played := duration(lines); played > time.Minute {
		t.Errorf("the recording plays %s", played)
	}
}

func TestDraw(t *testing.T) {
	output := slices.Repeat([]string{"line"}, rows)
	drawing := string(draw(append(output, "▸ A <part> & more", "┌──┐", "│ x│", "", "✓ "+strings.Repeat("long ", 40))))
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		`<text class="part" x="14" y="27">$ make demo</text>`, `>▸ A &lt;part&gt; &amp; more</text>`, "long …</text>",
		// The window is full after 27 lines, and then the text moves by a line of 17 pixels.
		"@keyframes text {\n0.00% { transform: translateY(0px) }\n19.61% { transform: translateY(-17px) }", "@keyframes cover {\n0.00% { transform: translateY(17px) }",
		"#text { animation-name: text; transform: translateY(-102px) }", "@media (prefers-reduced-motion: reduce) { #text, #cover { animation: none } }",
	} {
		if !strings.Contains(drawing, want) {
			t.Errorf("the drawing has no %q:\n%s", want, drawing)
		}
	}
}
