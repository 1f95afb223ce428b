// Package fault gives every error that crosses a boundary a kind, and, where a
// person can mend it, a hint.
//
// The kind decides what happens to the message whose handling failed (the
// table is in shared/host) and how a caller of a port may go on. The invariant:
// a kind states what is known about the world, never how severe it feels.
//
//   - Retry says that nothing is known to be wrong with the message.
//   - Missing and Conflict are ordinary answers of a port, not failures of it.
//   - An error without a kind is a Bug: somebody forgot to think about it.
package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Kind classifies an error. Kinds are written into logs and dead letters, so
// the list is append-only.
type Kind string

const (
	// Retry means that the same call may succeed later, unchanged.
	Retry Kind = "retry"
	// Throttled is a Retry that the other side asked for: its rate was exceeded
	// and nothing was done.
	Throttled Kind = "throttled"
	// Foreign means that the message or resource belongs to somebody else.
	Foreign Kind = "foreign"
	// Stale means that the message has expired or was overtaken.
	Stale Kind = "stale"
	// Poison means that no retry can ever decode or obey the message.
	Poison Kind = "poison"
	// Denied means that a right is missing; a person has to grant it.
	Denied Kind = "denied"
	// Missing means that the named thing does not exist.
	Missing Kind = "missing"
	// Conflict means that a compare-and-swap lost, or that the name is taken.
	Conflict Kind = "conflict"
	// Invalid means that the other side understood the request and refuses it.
	Invalid Kind = "invalid"
	// Rejected means that the other side refused the request, and did nothing, for a
	// reason that is not known to be lasting: the same request may succeed later.
	Rejected Kind = "rejected"
	// Unknown means that the call may or may not have taken effect.
	Unknown Kind = "unknown"
	// Bug means that an assumption of ours does not hold.
	Bug Kind = "bug"
)

// Error is an error of a known kind. Op says what was being done, in words
// that read well after "failed while": "creating the fleet of intent 3f…".
type Error struct {
	Op   string
	Kind Kind
	// Hint says what a person can do about it; empty when nobody can.
	Hint string
	Err  error
}

// E wraps err with what was being done and with what kind of failure it is.
// A nil err is allowed: the operation then speaks for itself.
func E(op string, kind Kind, err error) *Error {
	return &Error{Op: op, Kind: kind, Err: err}
}

// F is E with a formatted cause; %w works.
func F(op string, kind Kind, format string, args ...any) *Error {
	return E(op, kind, fmt.Errorf(format, args...))
}

// WithHint returns the error with a remedy for the reader.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error tells what was being done, what went wrong and what to try.
func (e *Error) Error() string {
	text := e.Op
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += " (try: " + e.Hint + ")"
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf finds the outermost kind in err's chain. A cancelled context is a
// Retry, because the host is stopping; an error without a kind is a Bug.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Retry
	}
	return Bug
}

// Is reports whether err is of one of the kinds.
func Is(err error, kinds ...Kind) bool {
	return err != nil && slices.Contains(kinds, KindOf(err))
}

// FindHint finds the first hint in err's tree, or "".
func FindHint(err error) string {
	if e, ok := err.(*Error); ok && e.Hint != "" { //nolint:errorlint // the tree is walked here
		return e.Hint
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return FindHint(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			if hint := FindHint(cause); hint != "" {
				return hint
			}
		}
	}
	return ""
}
