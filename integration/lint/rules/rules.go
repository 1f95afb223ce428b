// Package rules checks the imports between packages.
//
// The layout of Joist ensures separate permissions and pure decisions: the part that
// calls EC2 cannot call Kubernetes, the part that calls Kubernetes cannot call EC2, and
// decisions use no clock, no random numbers and no network. [Table] has each of these as
// a rule with its reason, and the test checks the rules with the go command's output.
//
// Invariants: a rule applies to the shipped code (each service alone, outside the
// workspace); a rule that matches nothing although its directory exists is a failure; and
// every folder of shared is a layer.
package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Reach is the depth of a rule.
type Reach int

const (
	// Direct checks the imports in the package's own files.
	Direct Reach = iota
	// Transitive checks everything that the package links.
	Transitive
)

// Rule forbids some packages to import some others. Patterns are import paths: a leading
// "./" stands for this repository, "*" for one element, a final "..." for a path and all
// below it, and "outside" for third-party packages. A pattern with a leading "!" excludes
// packages: the last matching pattern decides.
type Rule struct {
	Name     string
	Packages []string // the packages that the rule applies to
	Forbid   []string // the forbidden imports
	Trust    []string // packages whose own imports are allowed
	Own      bool     // whether a package may still import packages below itself
	Reach    Reach
	Tests    bool   // whether the rule applies to test files, too
	Home     string // the directory that may use the forbidden packages; it detects an outdated rule
	Reason   string // why, in one sentence for contributors
	Fix      string // what to do instead
}

// Violation is one forbidden import, with its import chain.
type Violation struct {
	Rule  Rule
	Chain []string // from the checked package to the forbidden one
}

// String describes the import, why it is forbidden, and the fix.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n\twhy: %s\n\tfix: %s",
		v.Rule.Name, strings.Join(v.Chain, " imports "), v.Rule.Reason, v.Rule.Fix)
}

// Check returns every violation of the rules in a graph, at most one per package and
// forbidden import. It omits packages that reach the forbidden one only through another
// checked package, because fixing that one fixes them all.
func Check(g Graph, rules []Rule) []Violation {
	var found []Violation
	for _, rule := range rules {
		for _, path := range g.Roots() {
			if rule.binds(path) {
				found = append(found, rule.judge(g, path)...)
			}
		}
	}
	return found
}

func (r Rule) binds(path string) bool { return matchAny(r.Packages, path) }

// forbids reports whether the rule forbids the import of path by from.
func (r Rule) forbids(from, path string) bool {
	return matchAny(r.Forbid, path) && (!r.Own || !strings.HasPrefix(path, from+"/"))
}

// judge searches breadth-first, so that it reports a shortest chain.
func (r Rule) judge(g Graph, subject string) []Violation {
	var found []Violation
	seen := map[string]bool{subject: true}
	queue := [][]string{{subject}}
	for len(queue) > 0 {
		chain := queue[0]
		queue = queue[1:]
		for _, next := range r.imports(g, chain) {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(chain), next)
			switch {
			case r.forbids(subject, next):
				found = append(found, Violation{Rule: r, Chain: longer})
			case r.Reach == Transitive && !r.binds(next) && !matchAny(r.Trust, next):
				queue = append(queue, longer)
			}
		}
	}
	return found
}

// imports returns the imports of a chain's last package. Test files count only for the
// chain's first package, because tests of dependencies are not linked.
func (r Rule) imports(g Graph, chain []string) []string {
	p, ok := g[chain[len(chain)-1]]
	if !ok {
		return nil
	}
	if r.Tests && len(chain) == 1 {
		return append(slices.Clone(p.Imports), p.TestImports...)
	}
	return p.Imports
}
