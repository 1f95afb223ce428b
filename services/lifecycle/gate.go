package lifecycle

import "context"

// gates looks after NodePools that are being deleted (B174).
func (s *Service) gates(context.Context, world) error { return nil }
