package planning

import "strings"

// ExpectedAnnotation names on a claim the pods that it was planned for, until its
// node is initialized: a batch in between must put them there again.
const ExpectedAnnotation = "joist.sh/expected"

// FormatExpected writes the UIDs of pods as the annotation has them.
func FormatExpected(pods []PlacedPod) string {
	var b strings.Builder
	for i := range pods {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pods[i].Pod.UID)
	}
	return b.String()
}

// ParseExpected is FormatExpected's inverse.
func ParseExpected(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
