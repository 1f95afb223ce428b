// Package peers checks Joist's fakes and models against independent implementations,
// because a fake that only its author checks proves nothing.
//
// The conformance suites of the models and fakes run against ElasticMQ, moto and AWS's
// own event-ruler. A peer is a fake, too, so it may fail a behaviour that has a row in
// the table of differences, with the failure message and the reason. A failure without a
// row fails the run, and so does a row without a failure, so the table stays correct.
//
// The CDK's command line deploys the synthesized stack to LocalStack and to moto; the
// test reads it back through the AWS SDK, and removes it.
//
// The package needs Java, Maven, Python and Node, and downloads the peers into
// .cache/peers; so only `make peers` runs it, and `go test` skips it.
package peers
