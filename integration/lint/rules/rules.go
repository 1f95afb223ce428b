// Package rules checks who may import whom.
//
// The layout of Joist is a promise about rights and about purity: the part that
// calls EC2 cannot touch Kubernetes, the part that touches Kubernetes cannot
// call EC2, and decisions use no clock, no random numbers and no network. [Table]
// states each promise as a rule with its reason, and the test compares the rules with
// what the go command reports.
//
// Invariants: a rule applies to what is shipped (each service alone, outside the
// workspace); a rule that matches nothing although its directory exists is
// itself a failure; and every folder of shared is a layer.
package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Reach says how far a rule looks.
type Reach int

const (
	// Direct judges the imports written in the package's own files.
	Direct Reach = iota
	// Transitive judges everything that is linked in through those imports.
	Transitive
)

// Rule forbids some packages to some others. Patterns are import paths: a
// leading "./" stands for this repository, "*" for one element, a final "..."
// for a path and all below it, and the word "outside" for every package that is
// neither ours nor the standard library's. A pattern that begins with "!" excludes
// packages: of the patterns that match a package, the last decides.
type Rule struct {
	Name     string
	Packages []string // which packages the rule binds
	Forbid   []string // what they may not import
	Own      bool     // whether a package may import packages below itself all the same
	Reach    Reach
	Tests    bool   // whether test files are bound as well
	Home     string // the directory that may use what is forbidden; guards against an outdated rule
	Reason   string // why, as a sentence that a contributor can accept
	Fix      string // what to do instead
}

// Violation is one import that a rule forbids, with the way that leads to it.
type Violation struct {
	Rule  Rule
	Chain []string // from the bound package to the forbidden one
}

// String says what imports what, why that is wrong, and how to fix it.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n\twhy: %s\n\tfix: %s",
		v.Rule.Name, strings.Join(v.Chain, " imports "), v.Rule.Reason, v.Rule.Fix)
}

// Check returns every violation of the rules in a graph, each bound package
// being reported once per forbidden import. A package that merely reaches the
// forbidden one through another bound package is left out: to fix the nearest fixes
// them all.
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

// forbids reports whether the rule forbids one package of the chain's first to import
// another.
func (r Rule) forbids(from, path string) bool {
	return matchAny(r.Forbid, path) && (!r.Own || !strings.HasPrefix(path, from+"/"))
}

// judge walks breadth first, so that the chain it reports is a shortest one.
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
			case r.Reach == Transitive && !r.binds(next):
				queue = append(queue, longer)
			}
		}
	}
	return found
}

// imports lists what the last package of a chain imports. Only the bound
// package's own tests matter: nobody links the tests of a dependency.
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
