package planning

import "strings"

// ExpectedPodsAnnotation lists on a NodeClaim the pods that it was planned for. Until its node is
// initialized, each batch must place them there again.
const ExpectedPodsAnnotation = "joist.sh/expected"

// FormatExpectedPods returns the value of the annotation: the UIDs of the pods.
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

// ParseExpectedPods is the inverse of FormatExpectedPods.
func ParseExpectedPods(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
