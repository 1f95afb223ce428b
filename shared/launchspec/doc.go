// Package launchspec is the pure way from a planned node to the whole EC2
// request: which offerings to try and in what order, the launch template with
// its user data, block devices and tags, and the fleet call.
//
// The invariants: equal inputs give equal bytes; a launch template's name
// derives from its content; everything that an instance must carry (owner tags,
// intent tag) is in the request, so that nothing has to be added afterwards for
// Joist to know its own.
package launchspec
