package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// markets is the catalog's own memory of prices and types.
const markets = "markets"

// folders are which kinds of documents a service reads and writes. Who writes one
// looks first whether it is there, which is a read.
var folders = map[string]struct{ reads, writes []string }{
	"watcher":    {[]string{catalog.Kind + "/latest"}, []string{planning.BatchKind + "/*", planning.SnapshotKind + "/*"}},
	"planner":    {[]string{planning.BatchKind + "/*", catalog.Kind + "/*"}, []string{launchspec.Kind + "/*", planning.PlanKind + "/*"}},
	"disruption": {[]string{planning.SnapshotKind + "/*", catalog.Kind + "/*"}, []string{launchspec.Kind + "/*", planning.PlanKind + "/*"}},
	"catalog":    {nil, []string{catalog.Kind + "/*", event.InventoryKind + "/*", markets + "/*"}},
	"lifecycle":  {[]string{catalog.Kind + "/*", launchspec.Kind + "/*", event.InventoryKind + "/*", planning.PlanKind + "/*"}, nil},
	"launcher":   {[]string{launchspec.Kind + "/*"}, nil},
}

// store is a service's part of the bucket.
func (s Scope) store(service string) []Statement {
	f, ok := folders[service]
	if !ok {
		return nil
	}
	out := []Statement{
		allow("ReadDocuments", []string{"s3:GetObject"}, s.each(slices.Concat(f.reads, f.writes)), s.inAccount()),
		s.list(),
	}
	if len(f.writes) > 0 {
		out = append(out, allow("WriteDocuments", []string{"s3:PutObject"}, s.each(f.writes), s.inAccount()))
	}
	return out
}

// list makes S3 say "missing" of an object that is not there; without it S3 says
// "denied". Such a question has no prefix, hence IfExists; a list of another
// cluster's part has one.
func (s Scope) list() Statement {
	return allow("ListDocuments", []string{"s3:ListBucket"}, []string{s.bucket()}, s.inAccount(),
		is("StringLikeIfExists", "s3:prefix", s.objects("*")[len(s.bucket())+1:]))
}

func (s Scope) each(folders []string) []string {
	out := make([]string, 0, len(folders))
	for _, f := range folders {
		out = append(out, s.objects(f))
	}
	slices.Sort(out)
	return out
}

// inAccount keeps documents from a bucket of the same name that somebody else made
// after ours was deleted.
func (s Scope) inAccount() Condition {
	return is("StringEquals", "aws:ResourceAccount", s.Account)
}

// Bucket is the bucket's policy, for one cluster or for all those that share it: TLS,
// nobody writes or removes a kind of document but the services whose kind it is, and
// objects go by age alone. A forged intent would be a forged launch.
func Bucket(clusters ...Scope) Document {
	if len(clusters) == 0 {
		return Document{}
	}
	s := clusters[0]
	out := []Statement{deny("DenyInsecureTransport", []string{"s3:*"}, []string{s.bucket(), s.bucket() + "/*"}, insecure())}
	for i, c := range clusters {
		for _, group := range c.writers() {
			sid := "DenyOtherWriters" + letter(i) + letter(len(out))
			out = append(out, deny(sid, []string{"s3:PutObject"}, c.each(group.folders), is("ArnNotEquals", "aws:PrincipalArn", group.roles...)))
		}
	}
	// The bucket's own expiry is no request, so nothing stands in its way.
	out = append(out, deny("DenyDeletion", []string{"s3:DeleteObject", "s3:DeleteObjectVersion"}, []string{s.bucket() + "/*"}))
	return document(out...)
}

// letter counts in letters, for a Sid has no punctuation.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letter(i/26-1) + letter(i%26)
}

type writers struct{ folders, roles []string }

// writers groups the folders by who writes them.
func (s Scope) writers() []writers {
	var out []writers
	for _, services := range [][]string{{"catalog"}, {"disruption", "planner"}, {"watcher"}} {
		w := writers{folders: folders[services[0]].writes}
		for _, service := range services {
			w.roles = append(w.roles, s.Role(service))
		}
		out = append(out, w)
	}
	return out
}

func insecure() Condition { return is("Bool", "aws:SecureTransport", "false") }
