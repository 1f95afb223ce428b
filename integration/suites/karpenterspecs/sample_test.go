package karpenterspecs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample draws one in share specs of a large suite, in addition to the specs that its list names, and one in smallShare of
// the small suites. A share of 0 or 1 is all.
type sample struct {
	share, seed uint64
}

// readSample reads JOIST_SPECS_SHARE and JOIST_SPECS_SEED. Without a seed it draws one.
func readSample() (sample, error) {
	out := sample{seed: uint64(time.Now().UnixNano()) % 1_000_000}
	for name, into := range map[string]*uint64{"JOIST_SPECS_SHARE": &out.share, "JOIST_SPECS_SEED": &out.seed} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return out, fmt.Errorf("%s=%s is not a number", name, text)
			}
			*into = n
		}
	}
	return out, nil
}

func (s sample) isWhole() bool { return s.share < 2 }

// smallShare is how many small suites there are for one that is drawn. To build and start one takes longer than most of
// their specs, so a drawn one runs whole.
const smallShare = 3

// hasSuite reports whether the small suite with this index is drawn.
func (s sample) hasSuite(i int) bool { return s.isWhole() || (uint64(i)+s.seed)%smallShare == 0 }

// focus returns a regular expression that matches the names of the drawn and of the listed specs, as Ginkgo writes them.
func (s sample) focus(all []outcome, listed suiteList) string {
	drawn := map[string]bool{}
	for _, group := range listed.Failures {
		for _, name := range group.Specs {
			drawn[name] = true
		}
	}
	for _, o := range all {
		h := sha256.Sum256(fmt.Appendf(nil, "%d %s", s.seed, o.name))
		if binary.LittleEndian.Uint64(h[:])%s.share == 0 {
			drawn[o.name] = true
		}
	}
	if len(drawn) == 0 && len(all) > 0 { // An empty expression would match all specs.
		drawn[all[s.seed%uint64(len(all))].name] = true
	}
	var patterns []string
	for name := range drawn {
		patterns = append(patterns, regexp.QuoteMeta(strings.ReplaceAll(name, " > ", " ")))
	}
	return "(" + strings.Join(patterns, "|") + ")$"
}

func TestSampleHasListedSpecs(t *testing.T) {
	var all []outcome
	for i := range 300 {
		all = append(all, outcome{name: fmt.Sprintf("Pods > fit (%d)", i)})
	}
	list := suiteList{Failures: []failureGroup{{Specs: []string{"Pods > fit (1)"}}}}
	count := func(s sample) (n int, listed bool) {
		focus := regexp.MustCompile(s.focus(all, list))
		for _, o := range all {
			if focus.MatchString(strings.ReplaceAll(o.name, " > ", " ")) {
				n++
				listed = listed || o.name == "Pods > fit (1)"
			}
		}
		return n, listed
	}
	different := map[int]bool{}
	for seed := range uint64(20) {
		n, listed := count(sample{share: 2, seed: seed})
		if !listed || n < 110 || n > 190 {
			t.Errorf("seed %d draws %d of 300 specs, the listed one: %t", seed, n, listed)
		}
		different[n] = true
	}
	if len(different) < 5 {
		t.Errorf("20 seeds draw only %d numbers of specs", len(different))
	}
}

func TestEachSmallSuiteIsDrawn(t *testing.T) {
	for i := range 5 {
		drawn := 0
		for seed := range uint64(smallShare) {
			if (sample{share: 2, seed: seed}).hasSuite(i) {
				drawn++
			}
		}
		if drawn != 1 || !(sample{seed: 1}).hasSuite(i) {
			t.Errorf("%d of %d seeds draw suite %d", drawn, smallShare, i)
		}
	}
}
