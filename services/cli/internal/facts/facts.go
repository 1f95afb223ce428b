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
	"github.com/joist-autoscaler/joist/shared/awsfault"
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
	AWS            func(ctx context.Context) (aws.Config, error)
	// Kube reads a path of the API server's.
	Kube kube.Reader
	// Store opens a bucket.
	Store func(ctx context.Context, bucket, prefix string) (blob.Store, error)
	// Run runs a program of this machine and gives what it prints.
	Run func(ctx context.Context, name string, args ...string) (string, error)
	Now func() time.Time
}

// gathering is one examination under way.
type gathering struct {
	Sources
	config aws.Config
	// reached says that AWS can be asked.
	reached bool

	mu     sync.Mutex
	facts  doctor.Facts
	unseen []doctor.Unseen
	all    sync.WaitGroup
}

// Gather looks at everything within Limit.
func Gather(ctx context.Context, s Sources) (doctor.Facts, []doctor.Unseen) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	g := &gathering{Sources: s, facts: doctor.Facts{Plan: s.Plan, Now: s.Now()}}
	// Nothing is asked by what this machine has, which may be slow to start.
	var machine sync.WaitGroup
	if s.Run != nil {
		machine.Go(func() { g.tools(ctx) })
	}
	g.first(ctx)
	// By now it is known whose roles they are, what the services need, and where documents
	// lie.
	if sofar := g.sofar(); sofar.Place.Account != "" {
		g.documents(ctx, sofar)
		g.simulate(ctx, sofar)
		g.all.Wait()
	}
	machine.Wait()
	slices.SortFunc(g.unseen, func(a, b doctor.Unseen) int { return strings.Compare(a.What, b.What) })
	return g.facts, g.unseen
}

// first looks at what the rest is asked by.
func (g *gathering) first(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstLimit)
	defer cancel()
	var err error
	if g.config, err = g.AWS(ctx); err != nil {
		g.miss(WholeAWS, err, "")
	} else {
		g.reached = true
		g.all.Go(func() { g.aws(ctx) })
	}
	if g.Kube != nil {
		g.all.Go(func() { g.cluster(ctx) })
	}
	g.all.Wait()
}

// sofar is what is known by now.
func (g *gathering) sofar() doctor.Facts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.facts
}

// set writes a fact.
func (g *gathering) set(fact func(f *doctor.Facts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fact(&g.facts)
}

// miss tells what could not be looked at. The action is IAM's, or a sentence about a
// right in Kubernetes, and is the remedy where the right is lacking.
func (g *gathering) miss(what string, err error, action string) {
	out := doctor.Unseen{What: what, Why: awsfault.Text(err), Fix: fault.HintOf(err)}
	var cause *fault.Error
	switch {
	case slices.Contains(unaccepted, awsfault.Code(err)):
		out = doctor.Unseen{What: WholeAWS, Why: "AWS does not accept the credentials of this shell (" + awsfault.Code(err) + ")", Fix: "log in again, and see what aws sts get-caller-identity prints"}
	case errors.Is(err, context.DeadlineExceeded):
		out.Why, out.Fix = fmt.Sprintf("it took longer than its part of %s", Limit), "look again; is the endpoint within reach of this machine?"
	case errors.As(err, &cause) && cause.Kind == fault.Denied && action != "":
		out.Why, out.Fix = "denied "+action, "grant "+action+" to whoever runs the command"
	}
	out.Why = strings.Join(strings.Fields(out.Why), " ")
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.unseen, out) {
		g.unseen = append(g.unseen, out)
	}
}

// look makes a call at the same time as others, and tells where it fails.
func (g *gathering) look(what, action string, call func() error) {
	g.all.Go(func() {
		if err := call(); err != nil {
			g.miss(what, awsfault.Read("looking at "+what, action).Fault(err), action)
		}
	})
}

// missing reports whether AWS says that there is no such thing.
func missing(err error) bool { return fault.Is(awsfault.Read("", "").Fault(err), fault.Missing) }
