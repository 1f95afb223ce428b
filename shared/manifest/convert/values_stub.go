package convert

func isValues(root *node) bool              { return false }
func (c *converter) readSettings(o *object) {}
func (c *converter) convertValueFiles()     {}

type nodeGroups struct{}

func (g *nodeGroups) accept(s *section) bool { return false }
func (c *converter) convertNodeGroups()      {}
