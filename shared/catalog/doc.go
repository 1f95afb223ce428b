// Package catalog says what EC2 can give: instance types, where and how each is offered and at what price, which labels
// a node of it carries, and how much of it a pod may use.
//
// The idea: a catalogue is one value, read-only and complete, that travels as a file. The catalog service writes it
// from the live account; Embedded carries an older copy inside the binary, so that a plan can be made, explained and
// tested on a machine that has no account at all. Everything else in the package is a pure function of that value.
//
// Invariants, checked by Catalogue.Validate:
//   - Types are sorted by name and their names differ; Offerings are sorted by zone, then capacity type.
//   - Every price is a finite number of US dollars per hour, or of the currency that the catalogue names. It is 0 where the
//     price is unknown; such an offering is never available.
//   - The same inputs give the same bytes: there are no maps in a catalogue, and no time that a clock supplied.
//
// A catalogue that was handed out is shared: treat it as read-only, and use Clone before changing one.
package catalog
