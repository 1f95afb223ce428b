package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// measureTerminal reports whether w is a terminal, and its width in columns, 0 if it is unknown.
func measureTerminal(w io.Writer) (columns int, isTerminal bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		columns = 0
	}
	return columns, true
}
