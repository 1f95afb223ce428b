// Package manifest reads Kubernetes manifests strictly. The API server silently drops
// unknown fields, and a pool with "limit" instead of "limits" has no limit at all. Read
// reports every unknown field, every value of the wrong type and every syntax error with
// its file, line, column, path and the most similar valid name.
//
// The rules:
//
//   - Any input gives documents or Problems, never a panic. Size, depth and counts are
//     limited before parsing.
//   - A file with a problem gives no documents. All its problems are reported, up to a limit.
//   - A null is an absent field, as for the API server.
//   - Kinds that planning does not read give a Document without an object.
//
// Read rejects what the API server would reject or drop. Lint warns about valid manifests
// that are probably mistakes.
package manifest
