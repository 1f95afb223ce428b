package meter

import (
	"os"
	"strconv"
	"strings"
)

// highWater returns the maximum memory of this program in MiB, if Linux reports it.
// getrusage is useless for that: its counter begins with the parent's memory at the start
// of the process.
func highWater() (mebibytes float64, known bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if figure, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kibibytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(figure), "kB")), 64)
			return kibibytes / 1024, err == nil
		}
	}
	return 0, false
}
