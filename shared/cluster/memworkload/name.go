package memworkload

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// alphabet is that of generated names in Kubernetes. It has no vowels, so that names
// contain no words.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// suffix derives n characters of a name from its parts.
func suffix(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out)
}

// uid derives a UID from its parts.
func uid(parts ...string) types.UID {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	sum[6] = sum[6]&0x0f | 0x40
	sum[8] = sum[8]&0x3f | 0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// hashOf is a hash of a pod template.
func hashOf(template corev1.PodTemplateSpec) (string, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return "", err
	}
	return suffix(9, string(text)), nil
}

// attempt returns the name of the next pod with this prefix and these parts.
func (k *Kubernetes) attempt(prefix string, purpose ...string) string {
	whole := strings.Join(purpose, "/")
	k.attempts[whole]++
	return prefix + "-" + suffix(5, whole, strconv.Itoa(k.attempts[whole]))
}
