// Package charts runs helm over the charts of deploy/charts, for tests and for
// the world of the end-to-end tests, which installs Joist as people do.
//
// Its own tests hold what the charts promise: the values of Karpenter's charts of every
// era are taken or told of, every value is documented and bounded, the environment of the
// pods is what the services read, the pods keep to the restricted security standard, and
// what is rendered is what an API server accepts. Goldens are written anew with -update.
package charts
