//go:build !unix

package simulate

import "time"

// processUsage returns zeros: this system is not supported.
func processUsage() (user, sys time.Duration, peak uint64) { return 0, 0, 0 }
