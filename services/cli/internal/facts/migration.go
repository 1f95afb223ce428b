package facts

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/services/cli/internal/migrate"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/iamprofile"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// migration is the state of one GatherMigration.
type migration struct {
	kube  kube.Reader
	mu    sync.Mutex
	facts migrate.MigrationFacts
}

// GatherMigration reads what joist doctor reads, and what a takeover from Karpenter depends on.
// namespace is where Joist is or will be installed.
func GatherMigration(ctx context.Context, s Sources, namespace string) migrate.MigrationFacts {
	g := &migration{kube: s.Kube, facts: migrate.MigrationFacts{Unread: map[migrate.Fact]doctor.Skipped{}, Namespace: namespace, Now: s.Now()}}
	objects, cancel := context.WithTimeout(ctx, cmp.Or(s.ClusterTimeout, Timeout))
	defer cancel()
	var calls sync.WaitGroup
	calls.Go(func() {
		installation, skipped := Gather(ctx, s)
		if g.addInstallation(installation, skipped); slices.ContainsFunc(skipped, func(s doctor.Skipped) bool { return s.Subject == WholeCluster }) {
			cancel() // The API server does not answer the other reads either.
		}
	})
	if s.Kube != nil {
		calls.Go(func() { g.readObjects(objects) })
	}
	calls.Wait()
	g.addCertificateAuthority()
	g.readProfiles(ctx, s)
	return g.facts
}

// kubernetesFacts are the facts that only Kubernetes has.
var kubernetesFacts = []migrate.Fact{
	migrate.Deployments, migrate.Leases, migrate.CRDs, migrate.Webhooks, migrate.NodePools, migrate.NodeClasses, migrate.NodeClaims, migrate.Nodes,
}

// addInstallation adds doctor's facts. What it skipped in Kubernetes are facts of their own here.
func (g *migration) addInstallation(installation doctor.Facts, skipped []doctor.Skipped) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := &g.facts
	f.Installation, f.Findings = installation, doctor.Examine(installation)
	for _, s := range skipped {
		switch fact := migrate.Fact(s.Subject); {
		case s.Subject == WholeCluster:
			for _, fact := range kubernetesFacts {
				f.Unread[fact] = s
			}
		case s.Subject == WholeAWS, fact == migrate.Deployments, fact == migrate.Leases:
			f.Unread[fact] = s
		case slices.Contains(kubernetesFacts, fact) || s.Subject == "the CRDs" || s.Subject == "the ConfigMap aws-auth":
		default:
			f.Skipped = append(f.Skipped, s)
		}
	}
}

// addCertificateAuthority uses the certificate authority that EKS returned, with which Joist hashes
// EC2NodeClasses, and otherwise that of the pods, with which Karpenter does.
func (g *migration) addCertificateAuthority() {
	if ca := g.facts.Installation.CertificateAuthority; ca != "" {
		g.facts.CertificateAuthority = ca
		delete(g.facts.Unread, migrate.ClusterCA)
	}
}

// readProfiles reads the instance profiles of the cluster: those below its path, and those in the status
// of EC2NodeClasses, which older versions of Karpenter created elsewhere. IAM's list has no tags.
func (g *migration) readProfiles(ctx context.Context, s Sources) {
	if _, unread := g.facts.Unread[migrate.AWS]; unread {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	found, err := g.listProfiles(ctx, s)
	if err != nil {
		g.recordUnread(migrate.InstanceProfiles, err, "iam:ListInstanceProfiles and iam:GetInstanceProfile")
		return
	}
	g.facts.Profiles = found
}

func (g *migration) listProfiles(ctx context.Context, s Sources) ([]cloud.Profile, error) {
	config, err := s.AWS(ctx)
	if err != nil {
		return nil, err
	}
	g.facts.Region = config.Region
	client := iamprofile.New(config)
	listed, err := client.ListProfiles(ctx, launchspec.ProfilePath(config.Region, s.Plan.Cluster))
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range listed {
		names = append(names, listed[i].Name)
	}
	for i := range g.facts.Classes {
		if name := g.facts.Classes[i].Status.InstanceProfile; name != "" && g.facts.Classes[i].Spec.InstanceProfile == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []cloud.Profile
	for _, name := range slices.Compact(names) {
		one, err := client.Profile(ctx, name)
		switch {
		case fault.Is(err, fault.Missing): // It was deleted meanwhile, or the status of a class is old.
		case err != nil:
			return nil, err
		default:
			out = append(out, one)
		}
	}
	return out, nil
}

// readObjects reads the objects that only a migration needs.
func (g *migration) readObjects(ctx context.Context) {
	var calls sync.WaitGroup
	read := func(fact migrate.Fact, right string, look func(context.Context) error) {
		calls.Go(func() {
			if err := look(ctx); err != nil {
				g.recordUnread(fact, err, "the right in Kubernetes to "+right)
			}
		})
	}
	read(migrate.CRDs, "list customresourcedefinitions.apiextensions.k8s.io", g.readCRDs)
	read(migrate.Webhooks, "list validatingwebhookconfigurations and mutatingwebhookconfigurations.admissionregistration.k8s.io", g.readWebhooks)
	read(migrate.NodePools, "list nodepools.karpenter.sh", func(ctx context.Context) error {
		return readKind(ctx, g, cluster.NodePools, func(f *migrate.MigrationFacts, all []karpenter.NodePool) { f.Pools = all })
	})
	read(migrate.NodeClasses, "list ec2nodeclasses.karpenter.k8s.aws", func(ctx context.Context) error {
		return readKind(ctx, g, cluster.NodeClasses, func(f *migrate.MigrationFacts, all []karpenter.EC2NodeClass) { f.Classes = all })
	})
	read(migrate.NodeClaims, "list nodeclaims.karpenter.sh", func(ctx context.Context) error {
		all, err := kube.List[karpenter.NodeClaim](ctx, g.kube, "/apis/karpenter.sh/v1/nodeclaims")
		g.set(func(f *migrate.MigrationFacts) { f.Claims = all })
		return err
	})
	read(migrate.Nodes, "list nodes", func(ctx context.Context) error {
		all, err := kube.List[corev1.Node](ctx, g.kube, "/api/v1/nodes")
		g.set(func(f *migrate.MigrationFacts) { f.Nodes = all })
		return err
	})
	read(migrate.ClusterCA, "get configmaps in kube-system", g.readCertificateAuthority)
	calls.Wait()
}

func (g *migration) set(change func(f *migrate.MigrationFacts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.facts)
}

// recordUnread records a fact that could not be read, with the missing right.
func (g *migration) recordUnread(fact migrate.Fact, err error, right string) {
	out := doctor.Skipped{Subject: string(fact), Reason: strings.Join(strings.Fields(awsfault.ErrorText(err)), " "), Fix: fault.FindHint(err)}
	switch {
	case fault.Is(err, fault.Denied):
		out.Reason, out.Fix = "denied "+right, "grant "+right+" to the identity that runs joist"
	case errors.Is(err, context.DeadlineExceeded):
		out.Reason, out.Fix = "timed out", "run joist migrate --check again; --timeout gives Kubernetes more time"
	}
	g.set(func(f *migrate.MigrationFacts) {
		if _, known := f.Unread[fact]; !known {
			f.Unread[fact] = out
		}
	})
}

// readKind reads the objects of a kind, and what Joist says about each: it refuses unknown fields and
// invalid values, which the API server may accept.
func readKind[T any](ctx context.Context, g *migration, kind cluster.Kind, put func(f *migrate.MigrationFacts, all []T)) error {
	texts, err := kube.List[json.RawMessage](ctx, g.kube, "/apis/"+kind.APIVersion()+"/"+kind.Resource)
	if err != nil {
		return err
	}
	var all []T
	var refused []migrate.ManifestProblem
	for _, text := range texts {
		var meta struct{ Metadata struct{ Name string } }
		var one T
		if err := errors.Join(json.Unmarshal(text, &meta), json.Unmarshal(text, &one)); err != nil {
			refused = append(refused, migrate.ManifestProblem{Object: strings.ToLower(kind.Kind) + "/" + meta.Metadata.Name, Reason: "cannot be read: " + err.Error()})
			continue
		}
		all = append(all, one)
		refused = append(refused, examineObject(kind, meta.Metadata.Name, text)...)
	}
	g.set(func(f *migrate.MigrationFacts) {
		put(f, all)
		f.Refused = append(f.Refused, refused...)
		slices.SortFunc(f.Refused, func(a, b migrate.ManifestProblem) int { return strings.Compare(a.Object, b.Object) })
	})
	return nil
}

// examineObject reads one object strictly, as joist plan reads files. The API server omits the kind
// of objects in a list.
func examineObject(kind cluster.Kind, name string, text json.RawMessage) []migrate.ManifestProblem {
	object := strings.ToLower(kind.Kind) + "/" + name
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return []migrate.ManifestProblem{{Object: object, Reason: err.Error()}}
	}
	fields["apiVersion"], fields["kind"] = json.RawMessage(`"`+kind.APIVersion()+`"`), json.RawMessage(`"`+kind.Kind+`"`)
	delete(fields, "status")
	delete(fields, "metadata")
	fields["metadata"] = json.RawMessage(`{"name":` + quoteJSON(name) + `}`)
	whole, err := json.Marshal(fields)
	if err != nil {
		return []migrate.ManifestProblem{{Object: object, Reason: err.Error()}}
	}
	documents, err := manifest.Read(object, whole)
	if problems, ok := errors.AsType[*manifest.Problems](err); ok {
		var out []migrate.ManifestProblem
		for _, p := range problems.List {
			out = append(out, migrate.ManifestProblem{Object: object, Reason: strings.TrimPrefix(p.Path+": "+p.Text, ": ")})
		}
		return out
	}
	if err != nil {
		return []migrate.ManifestProblem{{Object: object, Reason: err.Error()}}
	}
	var out []migrate.ManifestProblem
	for _, w := range manifest.Lint(documents) {
		out = append(out, migrate.ManifestProblem{Object: object, Reason: strings.TrimPrefix(w.Path+": "+w.Text, ": "), Warning: true})
	}
	return out
}

func quoteJSON(text string) string {
	quoted, _ := json.Marshal(text) // Text can always be quoted.
	return string(quoted)
}

// readCertificateAuthority reads the certificate authority of the pods.
func (g *migration) readCertificateAuthority(ctx context.Context) error {
	var found corev1.ConfigMap
	exists, err := kube.Get(ctx, g.kube, "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt", &found)
	if err == nil && !exists {
		err = fault.F("reading the ConfigMap kube-root-ca.crt", fault.Missing, "it does not exist in kube-system")
	}
	g.set(func(f *migrate.MigrationFacts) {
		f.CertificateAuthority = base64.StdEncoding.EncodeToString([]byte(found.Data["ca.crt"]))
	})
	return err
}
