package planning

import "strings"

// ExpectedPodsAnnotation names on a claim the pods that it was planned for, until its
// node is initialized: a batch in between must put them there again.
const ExpectedPodsAnnotation = "joist.sh/expected"

// FormatExpectedPods writes the UIDs of pods as the annotation has them.
func FormatExpectedPods(pods []PlacedPod) string {
	var b strings.Builder
	for i := range pods {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pods[i].Pod.UID)
	}
	return b.String()
}

// ParseExpectedPods is FormatExpected's inverse.
func ParseExpectedPods(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
