package launchspec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// IntentTag is the EC2 tag, and the annotation of a NodeClaim, that carries the
// intent's id. By it instances are found whose launch was never answered.
const IntentTag = "joist.sh/intent"

// Annotations that a NodeClaim carries from the plan. They are all that
// lifecycle needs in order to launch a claim again after any crash.
const (
	// IntentRefAnnotation is the reference to the intent's document.
	IntentRefAnnotation = "joist.sh/intent-ref"
	// BatchAnnotation is "<outbox uid>/<seq>": the fence that the claim came
	// through.
	BatchAnnotation = "joist.sh/batch"
	// ClaimsAnnotation is how many claims share the intent.
	ClaimsAnnotation = "joist.sh/claims"
	// AdmittedAnnotation marks a NodeClaim that passed lifecycle's checks and whose plan
	// is done: only such a claim is launched. Its value is the time, RFC 3339.
	AdmittedAnnotation = "joist.sh/admitted"
	// UnplannedAnnotation marks a NodeClaim that a person created and a plan launches.
	UnplannedAnnotation = "joist.sh/unplanned"
	// RefusalAnnotation is why nothing was launched for a NodeClaim, in words.
	RefusalAnnotation = "joist.sh/refusal"
	// CeilingAnnotation is the largest capacity that the claim may turn out to
	// have, as a JSON ResourceList, and what it may cost at most
	// (scheduling.PriceResource).
	CeilingAnnotation = "joist.sh/ceiling"
)

// ClaimName derives the name of the claim in a slot of an intent. It starts
// with the pool's name, as Karpenter's do, cut so that the whole fits a
// label value.
func ClaimName(nodePool, intent string, slot int) string {
	id := event.DeriveID("claim", event.Cluster{}, intent, strconv.Itoa(slot))
	const longest, suffix = 63, 10
	if len(nodePool) > longest-suffix-1 {
		nodePool = strings.TrimRight(nodePool[:longest-suffix-1], "-.")
	}
	return nodePool + "-" + id[:suffix]
}

// IntentID derives the id of the index-th intent of a batch or proposal.
func IntentID(cluster event.Cluster, cause string, index int) string {
	return event.DeriveID("intent", cluster, cause, strconv.Itoa(index))
}

// FormatRef writes a reference into an annotation.
func FormatRef(ref event.Ref) string {
	return fmt.Sprintf("%s/%s/%d", ref.Kind, ref.Digest, ref.Size)
}

// ParseRef reads what FormatRef wrote.
func ParseRef(text string) (event.Ref, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return event.Ref{}, fmt.Errorf("reference %q is not kind/digest/size", text)
	}
	size, err := strconv.Atoi(parts[2])
	if err != nil {
		return event.Ref{}, fmt.Errorf("reference %q has no size: %w", text, err)
	}
	ref := event.Ref{Kind: parts[0], Digest: event.Digest(parts[1]), Size: size}
	return ref, ref.Validate()
}
