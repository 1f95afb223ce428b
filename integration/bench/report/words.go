package report

import (
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// none stands for a figure that there is not.
const none = "–"

// plainStyle has no frames: tables are read in logs and pasted into issues.
func plainStyle() table.Style {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	return style
}

// money is in US dollars an hour.
func money(dollars float64) string {
	if dollars == 0 {
		return none
	}
	return fmt.Sprintf("%.2f", dollars)
}

// ratio is how many times the part the whole is.
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

// times is by how much a is more than b.
func times(a, b float64) string {
	if a <= 0 || b <= 0 {
		return none
	}
	if a/b < 10 {
		return fmt.Sprintf("%.1f×", a/b)
	}
	return fmt.Sprintf("%.0f×", a/b)
}

// count is a large number in thousands or millions.
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

// thousands is a number of pods as people write it.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
