// Package release makes and verifies the artifacts of a release: goreleaser makes the files of the
// GitHub release, ko the images, helm the charts, and cosign signs them.
//
// The GitHub workflow runs it on a tag with ghcr.io, and signs with the identity of the
// workflow. On a developer's machine it runs the same steps with a registry on loopback and
// a local key, without network.
//
// Invariants: the version is the only input that names a release; the files carry the date of
// the commit; dist/release.json lists every artifact with its digest; and nothing is pushed
// outside loopback without Publish.
package release
