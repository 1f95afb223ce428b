package report

import (
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// none stands for a missing figure.
const none = "–"

// plainStyle has no frames, because tables are read in logs and pasted into issues.
func plainStyle() table.Style {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	return style
}

// money formats US dollars per hour.
func money(dollars float64) string {
	if dollars == 0 {
		return none
	}
	return fmt.Sprintf("%.2f", dollars)
}

// ratio formats whole divided by part.
func ratio(whole, part float64) string {
	if part <= 0 || whole <= 0 {
		return none
	}
	return fmt.Sprintf("%.3f", whole/part)
}

func milliseconds(seconds float64) string {
	if seconds < 0.1 {
		return fmt.Sprintf("%.1f", seconds*1000)
	}
	return fmt.Sprintf("%.0f", seconds*1000)
}

// times formats a divided by b.
func times(a, b float64) string {
	if a <= 0 || b <= 0 {
		return none
	}
	if a/b < 10 {
		return fmt.Sprintf("%.1f×", a/b)
	}
	return fmt.Sprintf("%.0f×", a/b)
}

// count formats a large number with thousands or millions.
func count(n uint64) string {
	switch {
	case n < 10_000:
		return strconv.FormatUint(n, 10)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", (n+500)/1000)
	default:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
}

// thousands formats a number of pods with separators.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
