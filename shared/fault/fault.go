// Package fault gives every error that crosses a boundary a kind and, if an operator can fix it, a hint.
//
// The kind decides what happens to the message whose handling failed (host.DecideDisposition) and what the caller of
// a port may do next. The invariant: a kind states the known facts, never a severity.
//
//   - Retry means that no problem with the message is known.
//   - Missing and Conflict are normal results of a port, not failures of it.
//   - An error without a kind is a Bug: the code does not handle it.
package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind classifies an error. Logs and DLQ messages contain kinds, so the list is append-only.
type Kind string

const (
	// Retry means that the same call may succeed later.
	Retry Kind = "retry"
	// Throttled is a Retry after which the other side did nothing because its rate limit was exceeded.
	Throttled Kind = "throttled"
	// Foreign means that the message or resource belongs to another cluster, account or application.
	Foreign Kind = "foreign"
	// Stale means that the message has expired or is outdated.
	Stale Kind = "stale"
	// Poison means that the message can never be decoded or handled.
	Poison Kind = "poison"
	// Denied means that a permission is missing.
	Denied Kind = "denied"
	// Missing means that the named object does not exist.
	Missing Kind = "missing"
	// Conflict means that a compare-and-swap failed, or that the name is already used.
	Conflict Kind = "conflict"
	// Invalid means that the other side rejected the request as invalid; a retry does not help.
	Invalid Kind = "invalid"
	// Rejected means that the other side rejected the request, and did nothing, for a reason that may be temporary:
	// the same request may succeed later.
	Rejected Kind = "rejected"
	// Unknown means that the call may or may not have taken effect.
	Unknown Kind = "unknown"
	// Bug means an internal error: an assumption of the code does not hold.
	Bug Kind = "bug"
)

// Error is an error with a kind. Op is the operation, in words that follow "failed while": "creating the fleet of
// intent 3f…".
type Error struct {
	Op   string
	Kind Kind
	// Hint is what an operator can do about it; empty if nothing.
	Hint string
	Err  error
}

// E wraps err with an operation and a kind. err may be nil.
func E(op string, kind Kind, err error) *Error {
	return &Error{Op: op, Kind: kind, Err: err}
}

// F is E with a formatted cause; %w works.
func F(op string, kind Kind, format string, args ...any) *Error {
	return E(op, kind, fmt.Errorf(format, args...))
}

// WithHint sets the hint and returns the error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error returns the operation, the cause and the hint.
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// retryOrder decides the kind of joined errors: the one that is last here. The kinds after Bug are retried, so a message
// is only deleted or moved to the DLQ when none of its errors has such a kind.
var retryOrder = []Kind{"", Foreign, Stale, Poison, Invalid, Bug, Conflict, Missing, Throttled, Retry, Rejected, Denied, Unknown}

// KindOf returns the outermost kind in err's chain. A cancelled context is Retry, because the host is stopping; an
// error without a kind is Bug. If errors are joined, retryOrder decides which of their kinds it is.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if kind := findKind(err); kind != "" {
		return kind
	}
	return Bug
}

// findKind is KindOf, and "" for an error without a kind.
func findKind(err error) Kind {
	causes := joinedErrors(err)
	if len(causes) == 0 {
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Kind
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return Retry
		}
		return ""
	}
	last := Kind("")
	for _, cause := range causes {
		if kind := findKind(cause); slices.Index(retryOrder, kind) > slices.Index(retryOrder, last) {
			last = kind
		}
	}
	return last
}

// joinedErrors returns the errors that err joins. It returns nil if err joins none, and if an *Error wraps the joined errors,
// because the kind of that *Error counts.
func joinedErrors(err error) []error {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // the tree is walked here
		case *Error:
			return nil
		case interface{ Unwrap() []error }:
			return e.Unwrap()
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return nil
		}
	}
	return nil
}

// Is reports whether err has one of the kinds.
func Is(err error, kinds ...Kind) bool {
	return err != nil && slices.Contains(kinds, KindOf(err))
}

// AreAll reports whether each of the joined errors has one of the kinds.
func AreAll(err error, kinds ...Kind) bool {
	causes := joinedErrors(err)
	if len(causes) == 0 {
		return err != nil && slices.Contains(kinds, findKind(err))
	}
	return !slices.ContainsFunc(causes, func(cause error) bool { return !AreAll(cause, kinds...) })
}

// FindHint returns the first hint in err's tree, or "".
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

// Truncate returns a text of AWS, of Kubernetes or of a user as a message may quote it: at most limit bytes of it, cut between
// two characters, and "…" if something was cut.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
