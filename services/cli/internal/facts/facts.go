// Package facts looks at an installation for package doctor: at AWS, at Kubernetes, at
// the bucket and at this machine, all at the same time.
//
// It decides nothing. What cannot be looked at leaves its fact out, and is told with the
// right that was lacking: half an examination is worth more than none.
package facts

import (
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

// WholeAWS and WholeCluster stand in Unseen.What where nothing of AWS, or of Kubernetes, could be
// looked at.
const (
	WholeAWS     = "AWS"
	WholeCluster = "Kubernetes"
)

// unaccepted are AWS's codes for credentials that it does not accept: every call fails alike.
// Source: "Common errors" in the API references of IAM, SQS and EC2.
var unaccepted = []string{
	"AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId",
	"InvalidSignatureException", "MissingAuthenticationToken", "SignatureDoesNotMatch", "UnrecognizedClientException",
}

// Limit is how long all of it may take.
const Limit = 5 * time.Second

// firstLimit is the part of Limit for what the rest is asked by. An API server out of reach
// answers nothing until the end, and is not to take the time of S3 and IAM too.
const firstLimit = 3 * time.Second

// Sources are where facts are looked for. Kube, Store and Run may be nil, and then are
// not looked at.
type Sources struct {
	Plan topology.Plan
	// NodeRole is the name of the role of nodes.
	NodeRole string
	// Bucket and Prefix are where the services keep documents; an empty bucket is the one
	// that the stack makes.
	Bucket, Prefix string
	// NoEKS says that EKS does not run the control plane, where the catalog is no function
	// that could be asked.
	NoEKS bool
	AWS   func(ctx context.Context) (aws.Config, error)
	// Kube reads a path of the API server's.
	Kube kube.Reader
	// Store opens a bucket.
	Store func(ctx context.Context, bucket, prefix string) (blob.Store, error)
	// Run runs a program of this machine and gives what it prints.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	Now func() time.Time
}

// collector is one examination under way.
type collector struct {
	Sources
	config aws.Config
	// reached says that AWS can be asked.
	reached bool
	// catalogSeen is closed once the settings of the catalog's function were read, or cannot
	// be.
	catalogSeen chan struct{}

	mu     sync.Mutex
	facts  doctor.Facts
	unseen []doctor.Skipped
	all    sync.WaitGroup
}

// Gather looks at everything within Limit.
func Gather(ctx context.Context, s Sources) (doctor.Facts, []doctor.Skipped) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	g := &collector{Sources: s, facts: doctor.Facts{Plan: s.Plan, Now: s.Now()}, catalogSeen: make(chan struct{})}
	if s.NoEKS {
		g.facts.SelfManaged = &doctor.SelfManaged{}
	}
	// Nothing is asked by what this machine has, which may be slow to start.
	var machine sync.WaitGroup
	if s.Run != nil {
		machine.Go(func() { g.readTools(ctx) })
	}
	g.readFirst(ctx)
	// By now it is known whose roles they are, what the services need, and where documents
	// lie.
	if sofar := g.currentFacts(); sofar.Place.Account != "" {
		g.readDocuments(ctx, sofar)
		g.simulateRoles(ctx, sofar)
		g.all.Wait()
	}
	machine.Wait()
	slices.SortFunc(g.unseen, func(a, b doctor.Skipped) int { return strings.Compare(a.What, b.What) })
	return g.facts, g.unseen
}

// readFirst looks at what the rest is asked by.
func (g *collector) readFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstLimit)
	defer cancel()
	var err error
	if g.config, err = g.AWS(ctx); err != nil {
		g.recordSkipped(WholeAWS, err, "")
	} else {
		g.reached = true
		g.all.Go(func() { g.readAWS(ctx) })
	}
	if g.Kube != nil {
		g.all.Go(func() { g.readCluster(ctx) })
	}
	g.all.Wait()
}

// currentFacts is what is known by now.
func (g *collector) currentFacts() doctor.Facts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.facts
}

// setFact writes a fact.
func (g *collector) setFact(fact func(f *doctor.Facts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fact(&g.facts)
}

// recordSkipped tells what could not be looked at. The action is IAM's, or a sentence about a
// right in Kubernetes, and is the remedy where the right is lacking.
func (g *collector) recordSkipped(what string, err error, action string) {
	out := doctor.Skipped{What: what, Why: awsfault.Text(err), Fix: fault.HintOf(err)}
	var cause *fault.Error
	switch {
	case slices.Contains(unaccepted, awsfault.Code(err)):
		out = doctor.Skipped{What: WholeAWS, Why: "AWS rejects the credentials of this shell (" + awsfault.Code(err) + ")", Fix: "log in again; check with aws sts get-caller-identity"}
	case errors.Is(err, context.DeadlineExceeded):
		out.Why, out.Fix = fmt.Sprintf("timed out (all checks together have %s)", Limit), "run joist doctor again; check that this machine can reach the endpoint"
	case errors.As(err, &cause) && cause.Kind == fault.Denied && action != "":
		out.Why, out.Fix = "denied "+action, "grant "+action+" to the identity that runs joist"
	}
	out.Why = strings.Join(strings.Fields(out.Why), " ")
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.unseen, out) {
		g.unseen = append(g.unseen, out)
	}
}

// start calls try at the same time as others.
func (g *collector) start(what, action string, call func() error) {
	g.all.Go(func() { g.try(what, action, call) })
}

// try makes a call, and tells where it fails.
func (g *collector) try(what, action string, call func() error) {
	if err := call(); err != nil {
		g.recordSkipped(what, awsfault.Read("reading "+what, action).Fault(err), action)
	}
}

// asksEKS waits for the settings of the catalog's function, and reports whether EKS knows
// the cluster.
func (g *collector) asksEKS(ctx context.Context) bool {
	select {
	case <-g.catalogSeen:
	case <-ctx.Done():
	}
	return g.currentFacts().SelfManaged == nil
}

// isMissing reports whether AWS says that there is no such thing.
func isMissing(err error) bool { return fault.Is(awsfault.Read("", "").Fault(err), fault.Missing) }
