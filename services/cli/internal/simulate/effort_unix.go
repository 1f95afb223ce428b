//go:build unix

package simulate

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processUsage returns the CPU time of the process so far, and its maximum resident set size
// in bytes.
func processUsage() (user, sys time.Duration, peak uint64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0, 0 // The call cannot fail for the process itself.
	}
	var known bool
	if peak, known = peakMemory(); !known {
		peak = uint64(u.Maxrss)
		if runtime.GOOS != "darwin" {
			peak *= 1 << 10 // Other systems report kibibytes.
		}
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), peak
}

// peakMemory returns the maximum resident set size of the process in bytes, where Linux
// reports it. The value of getrusage begins with that of the parent process.
func peakMemory() (bytes uint64, known bool) {
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
