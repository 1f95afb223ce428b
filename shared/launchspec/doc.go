// Package launchspec turns planned nodes into complete EC2 requests: the offerings to try and their
// order, the launch template with its user data, block devices and tags, and the fleet call. It is
// pure.
//
// Build is the entry point. Planned nodes with the same offerings share an intent. The offerings pass
// the filters in order (filter.go), and the first remaining capacity type is used (choose.go). Each
// zone gets the subnet with the most free addresses (subnet.go), and types that need different
// templates get their own (template.go). Package bootstrap writes the user data.
//
// Equal inputs give equal bytes. A launch template's name derives from its content. Everything by
// which Joist identifies an instance (owner tags, intent tag) is in the request, so nothing must be
// added after the launch. If a request cannot be written, the pods become unplaced with the reason; if
// it can be launched but has a problem, the plan gets a warning.
package launchspec
