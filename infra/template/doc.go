// Package template reads a synthesized CloudFormation template as CloudFormation would:
// each intrinsic function and each reference becomes the text that a deployment to one
// place would have there.
//
// What tests know of a template they know from here: the rights that are judged, the
// rules that hold for all resources, and the AWS that the end-to-end tests run on. So
// they cannot read it differently. Libraries that parse templates leave references to
// resources open, and those are what this is about.
//
// Invariants: what cannot be resolved is an error, since a reference that is guessed
// would hide the mistake; of Fn::If the branch that is not taken is not looked at;
// reading changes nothing, so that a template can be read in many places.
package template
