package memcloud

import (
	"slices"
	"time"
)

// Effect is one write that changed something or was rejected. A repeated token that gets its first answer again is
// not an effect.
type Effect struct {
	Time   time.Time
	Action Action
	// Token is the ClientToken of a CreateFleet.
	Token string
	// IDs are instances, or the name of a template or profile.
	IDs []string
	// Error is AWS's error codes, if it rejected all or some.
	Error string
}

// Effects returns the writes from index from on, in order.
func (c *Cloud) Effects(from int) []Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from >= len(c.effects) {
		return nil
	}
	return slices.Clone(c.effects[from:])
}

func (c *Cloud) note(action Action, token, code string, ids ...string) {
	c.effects = append(c.effects, Effect{
		Time: c.clock, Action: action, Token: token, IDs: slices.Clone(ids), Error: code,
	})
}
