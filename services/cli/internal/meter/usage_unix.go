//go:build unix

package meter

import (
	"runtime"
	"syscall"
	"time"
)

// usage is the CPU time of the process so far, and its largest resident set in
// bytes.
func usage() (user, sys time.Duration, peak uint64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0, 0 // The call cannot fail for the process itself.
	}
	var known bool
	if peak, known = highWater(); !known {
		peak = uint64(u.Maxrss)
		if runtime.GOOS != "darwin" {
			peak *= 1 << 10 // Others count in kibibytes.
		}
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), peak
}
