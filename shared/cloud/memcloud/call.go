package memcloud

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// script is one programmed outcome of a call.
type script struct {
	refusal *Refusal
	kind    fault.Kind
	// after says that the call takes effect before it goes wrong; fine that it
	// does not go wrong at all.
	after, fine bool
}

// Deny takes the rights to the actions away until Allow.
func (c *Cloud) Deny(actions ...Action) { c.permit(actions, true) }

// Allow gives the rights to the actions back.
func (c *Cloud) Allow(actions ...Action) { c.permit(actions, false) }

func (c *Cloud) permit(actions []Action, denied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, action := range actions {
		c.denied[action] = denied
	}
}

// Refuse makes the next call of the action fail with AWS's code before it does
// anything; calls of Refuse and of the others below queue up.
func (c *Cloud) Refuse(action Action, kind fault.Kind, code, message string) {
	c.program(action, script{kind: kind, refusal: &Refusal{Code: code, Message: message}})
}

// RefuseLater is Refuse for the call that comes after n others: the page of a
// list after which it breaks off.
func (c *Cloud) RefuseLater(action Action, n int, kind fault.Kind, code, message string) {
	for range n {
		c.program(action, script{fine: true})
	}
	c.Refuse(action, kind, code, message)
}

// LoseCall makes the next call of the action never arrive.
func (c *Cloud) LoseCall(action Action) { c.program(action, script{kind: fault.Unknown}) }

// LoseAnswer makes the next call of the action take effect and not answer.
func (c *Cloud) LoseAnswer(action Action) {
	c.program(action, script{kind: fault.Unknown, after: true})
}

func (c *Cloud) program(action Action, s script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[action] = append(c.scripts[action], s)
}

// call is every API call: rights, then rate, then what was programmed, then
// chance, then the effect; and then perhaps the answer is lost. The order is
// EC2's: a call that was throttled or denied has not used its token up.
func (c *Cloud) call(ctx context.Context, action Action, effect func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return fault.E("calling "+string(action), fault.Retry, err)
	}
	c.mu.Lock()
	defer c.flush()
	c.advance(c.options.Now())
	count := c.count(action)
	count.Calls++
	if err := c.admit(action, count); err != nil {
		return c.op(action, err)
	}
	s := c.next(action)
	if s.kind != "" && !s.after {
		return c.op(action, s.error())
	}
	err := effect(c.clock)
	if s.after {
		return c.op(action, s.error())
	}
	return c.op(action, err)
}

// op says which call it was that failed.
func (c *Cloud) op(action Action, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}

func (c *Cloud) count(action Action) *Count {
	if c.counts[action] == nil {
		c.counts[action] = &Count{}
	}
	return c.counts[action]
}

// admit is rights and rate.
func (c *Cloud) admit(action Action, count *Count) error {
	if c.denied[action] {
		return denial(action, c.options.Account)
	}
	drawn := c.chance(c.faults.Throttle, "throttle", action)
	if drawn || !c.buckets[bucketOf[action]].take(c.clock, 1) {
		count.Throttled++
		return refuse(fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	}
	return nil
}

// denial is worded as the service words it, for adapters read the code.
func denial(action Action, account string) error {
	code := "AccessDenied"
	switch {
	case bucketOf[action] != unmeasured:
		code = "UnauthorizedOperation"
	case action == GetParameter || action == DescribeCluster || action == GetProducts || action == GetManagedResource:
		code = "AccessDeniedException"
	}
	return refuse(fault.Denied, code,
		"User: arn:aws:sts::%s:assumed-role/joist/joist is not authorized to perform: %s", account, action)
}

// next is what goes wrong with this call: first what was programmed, then
// chance. Reads that are lost are ordinary failures.
func (c *Cloud) next(action Action) script {
	if queue := c.scripts[action]; len(queue) > 0 {
		c.scripts[action] = queue[1:]
		if queue[0].fine {
			return script{}
		}
		return queue[0]
	}
	if !mutating[action] {
		return script{}
	}
	if c.chance(c.faults.LostCall, "lost call", action) {
		return script{kind: fault.Unknown}
	}
	if c.chance(c.faults.LostAnswer, "lost answer", action) {
		return script{kind: fault.Unknown, after: true}
	}
	return script{}
}

// chance decides about this one call of an action.
func (c *Cloud) chance(share float64, about string, action Action) bool {
	return share > 0 && c.share(about, string(action), strconv.Itoa(c.counts[action].Calls)) < share
}

func (s script) error() error {
	if s.refusal != nil {
		return fault.E("calling the modelled cloud", s.kind, s.refusal)
	}
	return fault.E("calling the modelled cloud", s.kind, errLost)
}
