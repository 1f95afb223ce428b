package launchspec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
)

// IntentTag is the EC2 tag, and the annotation of a NodeClaim, with the intent's id. It identifies the
// instances of a launch whose result was lost.
const IntentTag = "joist.sh/intent"

// Annotations of a NodeClaim from the plan. After a crash lifecycle can launch the NodeClaim with
// these alone.
const (
	// IntentRefAnnotation is the reference to the intent's document.
	IntentRefAnnotation = "joist.sh/intent-ref"
	// BatchAnnotation is "<outbox uid>/<seq>" of the batch with which the NodeClaim was admitted.
	BatchAnnotation = "joist.sh/batch"
	// ClaimsAnnotation is the number of NodeClaims that share the intent.
	ClaimsAnnotation = "joist.sh/claims"
	// AdmittedAnnotation marks a NodeClaim that passed lifecycle's checks and whose plan is done: only
	// such a NodeClaim is launched. Its value is the time, RFC 3339.
	AdmittedAnnotation = "joist.sh/admitted"
	// UnplannedAnnotation marks a NodeClaim that a user created and a plan launches.
	UnplannedAnnotation = "joist.sh/unplanned"
	// RefusalAnnotation is the reason why nothing was launched for a NodeClaim.
	RefusalAnnotation = "joist.sh/refusal"
	// CeilingAnnotation is the largest capacity that the NodeClaim may get, as a JSON ResourceList,
	// including its highest price (planning.PriceResource).
	CeilingAnnotation = "joist.sh/ceiling"
)

// ClaimName returns the name of the NodeClaim in a slot of an intent. It starts with the NodePool's
// name, like Karpenter's, shortened so that the name is a valid label value.
func ClaimName(nodePool, intent string, slot int) string {
	id := event.DeriveID("claim", event.Cluster{}, intent, strconv.Itoa(slot))
	const longest, suffix = 63, 10
	if len(nodePool) > longest-suffix-1 {
		nodePool = strings.TrimRight(nodePool[:longest-suffix-1], "-.")
	}
	return nodePool + "-" + id[:suffix]
}

// IntentID returns the id of the index-th intent of a batch or proposal.
func IntentID(cluster event.Cluster, cause string, index int) string {
	return event.DeriveID("intent", cluster, cause, strconv.Itoa(index))
}

// nonceLength is how many characters of the id of a user-created NodeClaim's intent do not depend on the NodeClaim's name.
const nonceLength = 16

// UnplannedIntentID is IntentID for a user-created NodeClaim. ClaimName cannot derive its name from the intent, so the second
// half of the id derives from the first half and the name: LaunchesUnplanned compares them.
func UnplannedIntentID(cluster event.Cluster, cause string, index int, claim string) string {
	nonce := IntentID(cluster, cause, index)[:nonceLength]
	return nonce + hashUnplanned(nonce, claim)
}

// LaunchesUnplanned reports whether the intent with the id launches the user-created NodeClaim.
func LaunchesUnplanned(intent, claim string) bool {
	return len(intent) > nonceLength && intent[nonceLength:] == hashUnplanned(intent[:nonceLength], claim)
}

func hashUnplanned(nonce, claim string) string {
	return event.DeriveID("unplanned claim", event.Cluster{}, nonce, claim)[:nonceLength]
}

// FormatRef returns the annotation value of a reference.
func FormatRef(ref event.Ref) string {
	return fmt.Sprintf("%s/%s/%d", ref.Kind, ref.Digest, ref.Size)
}

// ParseRef parses the result of FormatRef.
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

// ProfileAnnotation is the name of the instance profile that Joist created for the role of an EC2NodeClass. It remains
// after the role is removed from the spec, so that the profile is deleted when the class specifies its own. A class that
// never had a role causes no IAM calls.
const ProfileAnnotation = "joist.sh/instance-profile"

// ProfilePath returns the path of all instance profiles that Karpenter and Joist create for a cluster. That of an
// EC2NodeClass has its UID and a slash in addition (Karpenter: pkg/controllers/nodeclass/instanceprofile.go).
func ProfilePath(region, cluster string) string { return "/karpenter/" + region + "/" + cluster + "/" }
