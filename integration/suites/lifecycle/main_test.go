package lifecycle

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs all parallel subtests at the same time, also with few processors, because
// they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
