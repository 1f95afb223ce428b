package lifecycle

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets all stories of a test be told at a time, however few processors
// there are: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
