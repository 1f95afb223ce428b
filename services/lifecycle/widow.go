package lifecycle

import "context"

// widows looks after nodes whose claim is no more.
func (s *Service) widows(context.Context, world) error { return nil }
