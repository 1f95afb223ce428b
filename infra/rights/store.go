package rights

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// markets is the folder of the catalog's cached prices and types.
const markets = "markets"

// folders are the folders that a service reads and writes. A writer also reads, to check for
// an existing document.
var folders = map[string]struct{ reads, writes []string }{
	"watcher":    {[]string{catalog.Kind + "/latest"}, []string{planning.BatchKind + "/*", planning.SnapshotKind + "/*", planning.NodesKind + "/*"}},
	"planner":    {[]string{planning.BatchKind + "/*", planning.NodesKind + "/*", catalog.Kind + "/*"}, []string{launchspec.Kind + "/*", planning.PlanKind + "/*"}},
	"disruption": {[]string{planning.SnapshotKind + "/*", planning.NodesKind + "/*", catalog.Kind + "/*"}, []string{launchspec.Kind + "/*", planning.PlanKind + "/*"}},
	"catalog":    {nil, []string{catalog.Kind + "/*", event.InventoryKind + "/*", markets + "/*"}},
	"lifecycle":  {[]string{catalog.Kind + "/*", launchspec.Kind + "/*", event.InventoryKind + "/*", planning.PlanKind + "/*"}, nil},
	"launcher":   {[]string{launchspec.Kind + "/*"}, nil},
}

// storeStatements returns a service's permissions on the bucket.
func (s Scope) storeStatements(service string) []Statement {
	f, ok := folders[service]
	if !ok {
		return nil
	}
	out := []Statement{
		allow("ReadDocuments", []string{"s3:GetObject"}, s.objectARNs(slices.Concat(f.reads, f.writes)), s.inAccount()),
		s.listStatement(),
	}
	if len(f.writes) > 0 {
		out = append(out, allow("WriteDocuments", []string{"s3:PutObject"}, s.objectARNs(f.writes), s.inAccount()))
	}
	return out
}

// listStatement makes S3 report a missing object as missing instead of denied. That call has
// no prefix, hence IfExists; listing another cluster's folder has one and is not allowed.
func (s Scope) listStatement() Statement {
	return allow("ListDocuments", []string{"s3:ListBucket"}, []string{s.bucketARN()}, s.inAccount(),
		newCondition("StringLikeIfExists", "s3:prefix", s.objectARN("*")[len(s.bucketARN())+1:]))
}

func (s Scope) objectARNs(folders []string) []string {
	out := make([]string, 0, len(folders))
	for _, f := range folders {
		out = append(out, s.objectARN(f))
	}
	slices.Sort(out)
	return out
}

// inAccount excludes a bucket of the same name in another account, which could be created
// after the deletion of this one.
func (s Scope) inAccount() Condition {
	return newCondition("StringEquals", "aws:ResourceAccount", s.Account)
}

// BucketPolicy returns the bucket's policy for all clusters that share it. It requires TLS,
// denies writes to a folder except by the services that own it, and denies deletion, so
// objects only expire. A forged intent would be a forged launch.
func BucketPolicy(clusters ...Scope) Document {
	if len(clusters) == 0 {
		return Document{}
	}
	s := clusters[0]
	out := []Statement{deny("DenyInsecureTransport", []string{"s3:*"}, []string{s.bucketARN(), s.bucketARN() + "/*"}, insecureTransport())}
	for i, c := range clusters {
		for _, group := range c.writerGroups() {
			sid := "DenyOtherWriters" + letterNumber(i) + letterNumber(len(out))
			out = append(out, deny(sid, []string{"s3:PutObject"}, c.objectARNs(group.folders), newCondition("ArnNotEquals", "aws:PrincipalArn", group.roles...)))
		}
	}
	// The bucket's expiration is not a request and is not denied.
	out = append(out, deny("DenyDeletion", []string{"s3:DeleteObject", "s3:DeleteObjectVersion"}, []string{s.bucketARN() + "/*"}))
	return newDocument(out...)
}

// letterNumber returns a number as alphabetic characters, because a Sid has no punctuation.
func letterNumber(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letterNumber(i/26-1) + letterNumber(i%26)
}

type writerGroup struct{ folders, roles []string }

// writerGroups groups the folders by the roles that write them.
func (s Scope) writerGroups() []writerGroup {
	var out []writerGroup
	for _, services := range [][]string{{"catalog"}, {"disruption", "planner"}, {"watcher"}} {
		w := writerGroup{folders: folders[services[0]].writes}
		for _, service := range services {
			w.roles = append(w.roles, s.Role(service))
		}
		out = append(out, w)
	}
	return out
}

func insecureTransport() Condition { return newCondition("Bool", "aws:SecureTransport", "false") }
