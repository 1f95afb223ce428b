// Package cli runs the verbs by which a person operates Joist, whole, against the
// fake AWS wired as shared/topology says: joist queues, joist dead, joist replay and
// joist doctor. Dead letters come about as they really do: by a host that parks them, by
// SQS after too many receives, and by a rule that could not deliver.
package cli
