// Package facts reads the facts about an installation for package doctor: from AWS,
// Kubernetes, the bucket and this machine, all concurrently.
//
// It decides nothing. A fact that cannot be read is left out and listed as skipped, with the
// missing permission.
package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// WholeAWS and WholeCluster are the values of Skipped.Subject if no fact about AWS, or no fact about
// Kubernetes, could be read.
const (
	WholeAWS     = "AWS"
	WholeCluster = "Kubernetes"
)

// credentialErrors are AWS's codes for rejected credentials, with which every call fails. Source:
// "Common errors" in the API references of IAM, SQS and EC2.
var credentialErrors = []string{
	"AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId",
	"InvalidSignatureException", "MissingAuthenticationToken", "SignatureDoesNotMatch", "UnrecognizedClientException",
}

// Timeout bounds all reads together, unless Sources.ClusterTimeout gives those of Kubernetes more time.
const Timeout = 5 * time.Second

// firstTimeout bounds the reads on which others depend. An unreachable API server must not use
// up the time for S3 and IAM, nor an unreachable AWS the time of Kubernetes.
const firstTimeout = 3 * time.Second

// Sources are the sources of facts. Kube, Store and Run may be nil; then they are not read.
type Sources struct {
	Plan topology.Plan
	// NodeRole is the name of the node role.
	NodeRole string
	// Bucket and Prefix are the location of the documents. An empty bucket is the one that the
	// stack creates.
	Bucket, Prefix string
	// NoEKS reports that EKS does not run the control plane. It applies if no function of the catalog
	// exists whose settings decide this.
	NoEKS bool
	AWS   func(ctx context.Context) (aws.Config, error)
	// Kube reads a path of the API server.
	Kube kube.Reader
	// ClusterTimeout bounds the reads of Kubernetes once the API server has answered; 0 means that they share
	// Timeout with the others.
	ClusterTimeout time.Duration
	// Store opens a bucket.
	Store func(ctx context.Context, bucket, prefix string) (blob.Store, error)
	// Run runs a local program and returns its output.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	Now func() time.Time
}

// collector is the state of one Gather.
type collector struct {
	Sources
	config aws.Config
	// hasAWS reports whether the AWS configuration was loaded.
	hasAWS bool
	// catalogSeen is closed when the settings of the catalog's function were read, or could not be
	// read.
	catalogSeen chan struct{}

	mu      sync.Mutex
	facts   doctor.Facts
	skipped []doctor.Skipped
	calls   sync.WaitGroup
}

// Gather reads all facts within Timeout, or longer with a ClusterTimeout.
func Gather(ctx context.Context, s Sources) (doctor.Facts, []doctor.Skipped) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.ClusterTimeout, firstTimeout)+Timeout-firstTimeout)
	defer cancel()
	g := &collector{Sources: s, facts: doctor.Facts{Plan: s.Plan, Now: s.Now()}, catalogSeen: make(chan struct{})}
	if s.NoEKS {
		g.facts.SelfManaged = &doctor.SelfManaged{}
	}
	// No other read depends on the local programs, which may start slowly.
	var machine sync.WaitGroup
	if s.Run != nil {
		machine.Go(func() { g.readTools(ctx) })
	}
	g.readFirst(ctx)
	// The account, the roles, the services' permissions and the bucket are known now.
	ctx, cancel = context.WithTimeout(ctx, Timeout)
	defer cancel()
	if sofar := g.currentFacts(); sofar.Location.Account != "" {
		g.readDocuments(ctx, sofar)
		g.simulateRoles(ctx, sofar)
		g.calls.Wait()
	}
	machine.Wait()
	slices.SortFunc(g.skipped, func(a, b doctor.Skipped) int { return strings.Compare(a.Subject, b.Subject) })
	return g.facts, g.skipped
}

// readFirst reads the facts on which other reads depend.
func (g *collector) readFirst(ctx context.Context) {
	account, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	objects, cancelObjects := context.WithTimeout(ctx, cmp.Or(g.ClusterTimeout, firstTimeout))
	defer cancelObjects()
	var err error
	if g.config, err = g.AWS(account); err != nil {
		g.recordSkipped(WholeAWS, err, "")
	} else {
		g.hasAWS = true
		g.calls.Go(func() { g.readAWS(account) })
	}
	if g.Kube != nil {
		g.calls.Go(func() { g.readCluster(objects) })
	}
	g.calls.Wait()
}

// currentFacts returns the facts that have been read so far.
func (g *collector) currentFacts() doctor.Facts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.facts
}

// setFact changes the facts under the lock.
func (g *collector) setFact(fact func(f *doctor.Facts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fact(&g.facts)
}

// recordSkipped records a fact that could not be read. action is an IAM action, or a
// description of a right in Kubernetes, for the hint if it is missing.
func (g *collector) recordSkipped(what string, err error, action string) {
	out := doctor.Skipped{Subject: what, Reason: awsfault.ErrorText(err), Fix: fault.FindHint(err)}
	var cause *fault.Error
	switch {
	case slices.Contains(credentialErrors, awsfault.ErrorCode(err)):
		out = doctor.Skipped{Subject: WholeAWS, Reason: "AWS rejects the credentials of this shell (" + awsfault.ErrorCode(err) + ")", Fix: "log in again; check with aws sts get-caller-identity"}
	case errors.Is(err, context.DeadlineExceeded) && g.ClusterTimeout > 0:
		out.Reason, out.Fix = "timed out", "check that this machine can reach the endpoint, and run joist migrate --check again; --timeout gives Kubernetes more time"
	case errors.Is(err, context.DeadlineExceeded):
		out.Reason, out.Fix = fmt.Sprintf("timed out (all checks together have %s)", Timeout), "run joist doctor again; check that this machine can reach the endpoint"
	case errors.As(err, &cause) && cause.Kind == fault.Denied && action != "":
		out.Reason, out.Fix = "denied "+action, "grant "+action+" to the identity that runs joist"
	}
	out.Reason = strings.Join(strings.Fields(out.Reason), " ")
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.skipped, out) {
		g.skipped = append(g.skipped, out)
	}
}

// startCall runs a call concurrently with others.
func (g *collector) startCall(what, action string, call func() error) {
	g.calls.Go(func() { g.tryCall(what, action, call) })
}

// startDependentCall runs a call to AWS about an object of Kubernetes concurrently with others. The call has
// AWS's limit, not that of Kubernetes in ctx.
func (g *collector) startDependentCall(ctx context.Context, what, action string, call func(ctx context.Context) error) {
	g.startCall(what, action, func() error {
		limited, cancel := context.WithTimeout(ctx, firstTimeout)
		defer cancel()
		return call(limited)
	})
}

// tryCall runs a call and records its error.
func (g *collector) tryCall(what, action string, call func() error) {
	if err := call(); err != nil {
		g.recordSkipped(what, awsfault.ReadCall("reading "+what, action).Wrap(err), action)
	}
}

// usesEKS waits for the settings of the catalog's function, and reports whether EKS runs the
// control plane.
func (g *collector) usesEKS(ctx context.Context) bool {
	select {
	case <-g.catalogSeen:
	case <-ctx.Done():
	}
	return g.currentFacts().SelfManaged == nil
}

// isMissing reports whether AWS returned that the resource does not exist.
func isMissing(err error) bool { return fault.Is(awsfault.ReadCall("", "").Wrap(err), fault.Missing) }
