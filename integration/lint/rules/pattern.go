package rules

import (
	"path"
	"slices"
	"strings"
)

// Module is the import path that "./" stands for in a pattern.
const Module = "github.com/joist-autoscaler/joist"

// outside is the pattern of third-party packages.
const outside = "outside"

// matchAny reports whether the last matching pattern is one without "!".
func matchAny(patterns []string, importPath string) bool {
	for _, pattern := range slices.Backward(patterns) {
		if rest, negative := cutNegation(pattern); match(rest, importPath) {
			return !negative
		}
	}
	return false
}

// cutNegation removes the "!" of a pattern that excludes packages.
func cutNegation(pattern string) (rest string, negative bool) { return strings.CutPrefix(pattern, "!") }

func match(pattern, importPath string) bool {
	if pattern == outside {
		return !isStandard(importPath) && !isOwn(importPath)
	}
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = Module + "/" + rest
	}
	prefix, open := strings.CutSuffix(pattern, "/...")
	want, have := strings.Split(prefix, "/"), strings.Split(importPath, "/")
	if len(have) < len(want) || !open && len(have) > len(want) {
		return false
	}
	for i, element := range want {
		if ok, err := path.Match(element, have[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

func isOwn(importPath string) bool {
	return importPath == Module || strings.HasPrefix(importPath, Module+"/")
}

// isStandard reports whether a path is in the standard library: as in the go command, the
// first element of other paths has a dot.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// literal returns the directory in this repository below which a pattern can match, or ""
// for a pattern of third-party packages.
func literal(pattern string) string {
	rest, ok := strings.CutPrefix(pattern, "./")
	if !ok {
		return ""
	}
	var fixed []string
	for element := range strings.SplitSeq(rest, "/") {
		if element == "..." || strings.ContainsAny(element, "*?[") {
			break
		}
		fixed = append(fixed, element)
	}
	return strings.Join(fixed, "/")
}
