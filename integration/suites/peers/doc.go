// Package peers puts what others wrote where our fakes stand: a fake that no
// one else checked proves nothing.
//
// The very suites that our models and fakes pass run against ElasticMQ, moto
// and AWS's own event-ruler. A peer is a fake too, so it may fail a behaviour
// for which the table of differences has a row, with the words that it fails
// with and the reason. A failure without a row fails the run, and so does a row
// whose failure is gone: the table stays true.
//
// The synthesized stack is deployed to LocalStack and to moto by the CDK's own command
// line, read back through the AWS SDK, and removed again.
//
// It needs Java, Maven, Python and Node, and fetches the peers into .cache/peers;
// that is why it runs by `make peers` alone and `go test` skips it.
package peers
