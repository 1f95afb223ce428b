package event

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// idBytes is how many bytes of the hash an id keeps: 128 bits, 32 hex digits, which fits EC2's ClientToken (64 ASCII
// characters at most) and a label value.
const idBytes = 16

// DeriveID hashes a kind, a cluster and key fields into an id. Each field is preceded by its length, so that
// different lists have different encodings.
func DeriveID(kind string, cluster Cluster, key ...string) string {
	// Most keys fit into this buffer, which avoids an allocation.
	var room [512]byte
	text := appendField(appendField(appendField(room[:0], kind), cluster.Name), cluster.UID)
	for _, field := range key {
		text = appendField(text, field)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:idBytes])
}

func appendField(text []byte, field string) []byte {
	return append(binary.BigEndian.AppendUint64(text, uint64(len(field))), field...)
}
