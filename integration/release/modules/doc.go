// Package modules makes the Go modules of a release, so that
//
//	go install github.com/joist-autoscaler/joist/services/cli/cmd/joist@v0.1.0
//
// works. Between releases each go.mod replaces Joist's other modules by folders, and go install refuses such modules.
// Cut therefore makes a release commit, whose only parent is the released commit: there each released module
// requires the others at the release's version, its go.sum has their hashes, and no replace directive remains. The
// commit is on no branch; a tag per module, such as services/cli/v0.1.0, keeps it.
//
// The go command computes every hash: Cut tags the modules in the order of their requirements in a scratch clone,
// and go mod download fetches each from there as it will fetch it from GitHub (Git maps the address to the clone).
// A module's hash depends on its folder and on LICENSE only, so it stays the same when later modules change the
// commit; Cut downloads all modules of the final commit again and compares. The download cache of that second run is a file
// proxy in the format of GOPROXY=file://, which Build and Install use.
//
// Modules that no release has, such as integration, keep their replace directives.
package modules
