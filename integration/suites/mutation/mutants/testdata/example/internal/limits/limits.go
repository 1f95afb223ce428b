// Package limits has no tests of its own.
package limits

// IsHigh reports whether a number is high.
func IsHigh(n int) bool { return n >= 100 }

// IsLow is called by no test.
func IsLow(n int) bool { return n < 10 }
