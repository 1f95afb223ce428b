//go:build unix

package meter

import (
	"os"
	"strconv"
	"strings"
)

// highWater is the largest resident set of this program in bytes, where Linux
// tells it. The counters of getrusage are of no use for that: they begin with
// what the parent process held when it started us.
func highWater() (bytes uint64, known bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if figure, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kibibytes, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(figure), "kB")), 10, 64)
			return kibibytes << 10, err == nil
		}
	}
	return 0, false
}
