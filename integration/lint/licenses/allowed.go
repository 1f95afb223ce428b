package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowedLicenses lists the SPDX identifiers of the licences that every module may have.
// Each permits use in a binary under the Apache License 2.0 if its text goes along.
var allowedLicenses = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "Unlicense"}

// allowedModules lists modules with another licence, and why that is acceptable.
var allowedModules = map[string]exception{
	"github.com/hashicorp/golang-lru/v2": {"MPL-2.0", "its files are unmodified; source code: https://github.com/hashicorp/golang-lru"},
}

// exception permits one licence for one module.
type exception struct{ License, Reason string }

// coveredMin is the smallest percentage of a licence file's words that known licences must
// cover. Pkgsite, which shows the licences of Go modules, has the same limit.
const coveredMin = 75

// identifyLicenses returns the SPDX identifiers of the licences in a text, sorted, and none
// if the text is not that of known licences.
func identifyLicenses(text string) []string {
	coverage := licensecheck.Scan([]byte(text))
	if coverage.Percent < coveredMin {
		return nil
	}
	ids := map[string]bool{}
	for _, match := range coverage.Match {
		if !match.IsURL {
			ids[match.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// checkLicenses returns a finding for each module with a licence that is not allowed, and
// for each exception that no module needs.
func checkLicenses(modules []*module, exceptions map[string]exception) []string {
	var findings []string
	unused := maps.Clone(exceptions)
	for _, m := range modules {
		report := func(problem string) {
			findings = append(findings, fmt.Sprintf("%s %s (imported by %s)\n\tfix: replace the module; if its licence permits the use in Joist, add it to integration/lint/licenses/allowed.go",
				m.Path, problem, strings.Join(m.Importers, ", ")))
		}
		if len(m.Licenses) == 0 {
			report("has no licence file")
		}
		for _, path := range slices.Sorted(maps.Keys(m.Licenses)) {
			ids := identifyLicenses(m.Licenses[path])
			if len(ids) == 0 {
				report("has an unknown licence in " + path)
			}
			for _, id := range ids {
				switch {
				case slices.Contains(allowedLicenses, id):
				case exceptions[m.Path].License == id:
					delete(unused, m.Path)
				default:
					report(fmt.Sprintf("has the licence %s in %s, which is not allowed", id, path))
				}
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(unused)) {
		findings = append(findings, path+" is not linked under "+unused[path].License+"\n\tfix: remove it from integration/lint/licenses/allowed.go")
	}
	return findings
}
