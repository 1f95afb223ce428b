package event

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// idBytes is how much of the hash an id keeps: 128 bits, 32 hex digits, which
// fits EC2's ClientToken (64 ASCII characters at most) and a label value.
const idBytes = 16

// DeriveID hashes a kind, a cluster and key fields into an id. Each field is
// preceded by its length, so that no two different lists hash alike.
func DeriveID(kind string, cluster Cluster, key ...string) string {
	h := sha256.New()
	write := func(field string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write([]byte(field))
	}
	write(kind)
	write(cluster.Name)
	write(cluster.UID)
	for _, field := range key {
		write(field)
	}
	return hex.EncodeToString(h.Sum(nil)[:idBytes])
}
