// Package versions knows every text that one version of Joist writes and another may read: messages, documents in
// S3, annotations and ConfigMaps. It keeps an example of each, with every field set, and freezes the examples with
// each release, so that a later version proves that it still reads them. It also rewrites texts as the next version
// or the last released version would write them; the simulator uses that.
//
// Invariants: a file of a released corpus is never edited or removed; today's types read every released example
// without loss; and a rewritten text differs only in fields that one of the two versions does not have.
package versions

//go:generate go test . -run ^TestNextRelease$ -update
