// Package launchspec is the pure way from a planned node to the whole EC2
// request: which offerings to try and in what order, the launch template with
// its user data, block devices and tags, and the fleet call.
//
// Build is the one entry. Planned nodes that may be bought in the same ways share
// an intent. Its offerings go through the filters in their order (filter.go), the
// first capacity type that is left is tried (choose.go), each zone gets the subnet
// that has most addresses left (subnet.go), and types that need another template get
// one of their own (template.go). Package bootstrap writes the user data.
//
// The invariants: equal inputs give equal bytes; a launch template's name
// derives from its content; everything that an instance must carry (owner tags,
// intent tag) is in the request, so that nothing has to be added afterwards for
// Joist to know its own. What cannot be launched gives its pods back with the
// reason, and what can but should not is a warning of the plan.
package launchspec
