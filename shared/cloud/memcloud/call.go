package memcloud

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// script is the programmed result of one call.
type script struct {
	refusal *Refusal
	kind    fault.Kind
	// after means that the call takes effect before it fails; fine means that it does not fail.
	after, fine bool
}

// Deny removes the permissions for the actions until Allow.
func (c *Cloud) Deny(actions ...Action) { c.permit(actions, true) }

// Allow restores the permissions for the actions.
func (c *Cloud) Allow(actions ...Action) { c.permit(actions, false) }

func (c *Cloud) permit(actions []Action, denied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, action := range actions {
		c.denied[action] = denied
	}
}

// Refuse makes the next call of the action fail with AWS's code and no effect; further calls of Refuse and of the
// functions below are queued.
func (c *Cloud) Refuse(action Action, kind fault.Kind, code, message string) {
	c.program(action, script{kind: kind, refusal: &Refusal{Code: code, Message: message}})
}

// RefuseLater is Refuse for the call after n others, for example to interrupt a list after some pages.
func (c *Cloud) RefuseLater(action Action, n int, kind fault.Kind, code, message string) {
	for range n {
		c.program(action, script{fine: true})
	}
	c.Refuse(action, kind, code, message)
}

// LoseCall makes the next call of the action fail before it arrives.
func (c *Cloud) LoseCall(action Action) { c.program(action, script{kind: fault.Unknown}) }

// LoseAnswer makes the next call of the action take effect and lose its response.
func (c *Cloud) LoseAnswer(action Action) {
	c.program(action, script{kind: fault.Unknown, after: true})
}

// EndFaults drops the refusals and losses of the action that no call has met.
func (c *Cloud) EndFaults(action Action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.scripts, action)
}

func (c *Cloud) program(action Action, s script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[action] = append(c.scripts[action], s)
}

// call models every API call: it checks permissions, then the rate limit, then programmed results, then random
// faults, then runs the effect; then the response may be lost. The order is EC2's: a call that was throttled or
// denied has not used up its ClientToken.
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

// op adds the action to an error.
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

// admit checks permissions and the rate limit.
func (c *Cloud) admit(action Action, count *Count) error {
	if c.denied[action] {
		return denial(action, c.options.Account)
	}
	drawn := c.countFault("throttled", c.chance(c.faults.Throttle, "throttle", action))
	if drawn || !c.buckets[bucketOf[action]].take(c.clock, 1) {
		count.Throttled++
		return refuse(fault.Throttled, "RequestLimitExceeded", "Request limit exceeded.")
	}
	return nil
}

// denial uses the service's own code, because adapters read it.
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

// next returns the fault of this call: a programmed one first, then a random one. Lost reads are normal failures.
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
	if c.countFault("call-lost", c.chance(c.faults.LostCall, "lost call", action)) {
		return script{kind: fault.Unknown}
	}
	if c.countFault("answer-lost", c.chance(c.faults.LostAnswer, "lost answer", action)) {
		return script{kind: fault.Unknown, after: true}
	}
	return script{}
}

// chance draws for this one call of an action.
func (c *Cloud) chance(share float64, about string, action Action) bool {
	return share > 0 && c.share(about, string(action), strconv.Itoa(c.counts[action].Calls)) < share
}

func (s script) error() error {
	if s.refusal != nil {
		return fault.E("calling the simulated EC2", s.kind, s.refusal)
	}
	return fault.E("calling the simulated EC2", s.kind, errLost)
}
