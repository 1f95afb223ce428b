package cloud

import "time"

const (
	// CallTimeout is how long one call to EC2 may take, retries included.
	CallTimeout = 4 * time.Minute
	// LaunchTimeout is how long the launcher may take for one message: a call, and time to
	// report its result. It begins no message that has expired, so that an instance is
	// launched no later than this after the expiry of the last request.
	LaunchTimeout = CallTimeout + 15*time.Second
)
