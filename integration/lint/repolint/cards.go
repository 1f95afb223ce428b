package repolint

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// cardHeadings are the required headings, in this order.
var cardHeadings = []string{"Consumes", "Emits", "Rights", "Alarms"}

// Cards finds services whose README is missing or lacks a heading. A service without Go
// files may have none.
func Cards(files []File) []Finding {
	coded, cards := map[string]bool{}, map[string]string{}
	for _, file := range files {
		service, rest, ok := serviceOf(file.Path)
		switch {
		case !ok:
		case rest == "README.md":
			cards[service] = file.Text
		case file.isGo():
			coded[service] = true
		}
	}
	var found []Finding
	for _, service := range slices.Sorted(maps.Keys(coded)) {
		if _, ok := cards[service]; !ok {
			found = append(found, Finding{"services/" + service + "/README.md", 0, "the service has no card: what it consumes and emits, its rights and its alarms"})
		}
	}
	for _, service := range slices.Sorted(maps.Keys(cards)) {
		for _, heading := range cardHeadings {
			if !hasHeading(cards[service], heading) {
				found = append(found, Finding{"services/" + service + "/README.md", 0, "the card has no heading " + heading})
			}
		}
	}
	return found
}

func hasHeading(text, heading string) bool {
	return regexp.MustCompile(`(?m)^#{2,4} ` + heading + `\b`).MatchString(text)
}

func serviceOf(name string) (service, rest string, ok bool) {
	below, ok := strings.CutPrefix(name, "services/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(below, "/")
}
