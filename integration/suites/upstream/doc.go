// Package upstream compares shared/karpenter with Karpenter itself, which is only a test
// dependency and never part of Joist.
//
// Its tests check that an object converts from either side's types to the other's and
// back without loss; that both sides have the same JSON fields; that Joist's manifests
// accept exactly what upstream's accept; and that drift hashes and claims that no longer
// match their pool's requirements are equal. To adopt a new Karpenter release, raise its
// version in go.mod and read the tests' output.
package upstream
