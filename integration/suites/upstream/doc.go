// Package upstream compares shared/karpenter with Karpenter itself, which is a peer here and never a part of Joist.
//
// Its tests hold five promises: an object passes from either side's types to the other's and back without loss; upstream
// has no JSON field that we lack; our manifests accept exactly what upstream's accept; the drift hashes are equal; and so are the
// claims that no longer are what their pool requires.
// A new Karpenter release is taken up by raising its version in go.mod and reading what these tests print.
package upstream
