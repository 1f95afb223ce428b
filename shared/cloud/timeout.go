package cloud

import "time"

const (
	// CallTimeout is the timeout of one call to EC2, including retries.
	CallTimeout = 4 * time.Minute
	// LaunchTimeout is the launcher's timeout for one message: a call, and time to report its result. The launcher
	// begins no expired message, so no instance is launched later than this after the expiry of the last request.
	LaunchTimeout = CallTimeout + 15*time.Second
)
