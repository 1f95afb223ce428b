package lifecycle

import "context"

// Release lets another replica lead at once, when this one has stopped.
// Karpenter's Lease is left to run out: the watcher may act under it still.
func (s *Service) Release(ctx context.Context) error {
	return s.election.Release(ctx, s.Client)
}
