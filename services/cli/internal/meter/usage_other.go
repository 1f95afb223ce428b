//go:build !unix

package meter

import "time"

// usage is not known on this system.
func usage() (user, sys time.Duration, peak uint64) { return 0, 0, 0 }
