package rights_test

import (
	"fmt"
	"slices"
)

func attacksOnDocuments() []attack {
	writers := map[string][]string{
		"batches": {"watcher"}, "snapshots": {"watcher"}, "nodes": {"watcher"}, "plans": {"planner", "disruption"}, "intents": {"planner", "disruption"},
		"catalogues": {"catalog"}, "inventories": {"catalog"}, "markets": {"catalog"},
	}
	var out []call
	s3 := func(name, who, action, arn string, contexts ...map[string][]string) {
		out = append(out, call{name: name, who: who, models: action, needs: singleCall(newCall("s3:"+action, arn, contexts...))})
	}
	for _, folder := range []string{"batches", "catalogues", "intents", "inventories", "markets", "nodes", "plans", "snapshots"} {
		for _, who := range services() {
			if !slices.Contains(writers[folder], who) {
				s3(fmt.Sprintf("%s writes %s", who, folder), who, "PutObject", object(cluster, folder+"/1"))
			}
		}
		s3("an administrator writes "+folder, "administrator", "PutObject", object(cluster, folder+"/1"))
		s3("the writer of "+folder+" deletes one", writers[folder][0], "DeleteObject", object(cluster, folder+"/1"))
	}
	s3("an administrator deletes an intent", "administrator", "DeleteObject", object(cluster, "intents/1"))
	s3("an administrator deletes a version of an intent", "administrator", "DeleteObjectVersion", object(cluster, "intents/1"))
	for _, who := range []string{"watcher", "planner", "catalog"} {
		folder := map[string]string{"watcher": "snapshots", "planner": "intents", "catalog": "catalogues"}[who]
		s3(who+" writes "+folder+" of the other cluster", who, "PutObject", object(beside, folder+"/1"))
		s3(who+" reads "+folder+" of the other cluster", who, "GetObject", object(beside, folder+"/1"))
		s3(who+" writes "+folder+" without a cluster's prefix", who, "PutObject", "arn:aws:s3:::joist-"+cluster+"-"+account+"-"+region+"/"+folder+"/1")
		s3(who+" writes "+folder+" of the other cluster in a bucket that both share", who, "PutObject", "arn:aws:s3:::joist-"+cluster+"-"+account+"-"+region+"/"+beside+"/"+folder+"/1")
		s3(who+" reads "+folder+" of the other cluster in a bucket that both share", who, "GetObject", "arn:aws:s3:::joist-"+cluster+"-"+account+"-"+region+"/"+beside+"/"+folder+"/1")
		s3(who+" changes the access of "+folder, who, "PutObjectAcl", object(cluster, folder+"/1"))
	}
	for _, c := range [][2]string{{"launcher", "snapshots"}, {"launcher", "batches"}, {"launcher", "plans"}, {"planner", "markets"}, {"disruption", "batches"}, {"catalog", "intents"},
		{"catalog", "batches"}, {"interruption", "plans"}, {"lifecycle", "batches"}, {"lifecycle", "snapshots"}, {"lifecycle", "nodes"}, {"launcher", "nodes"}, {"watcher", "intents"}, {"watcher", "plans"}} {
		s3(c[0]+" reads "+c[1], c[0], "GetObject", object(cluster, c[1]+"/1"))
	}
	bucket := "arn:aws:s3:::joist-" + cluster + "-" + account + "-" + region
	theirs := key("aws:ResourceAccount", foreign)
	for _, c := range []struct{ who, reads, writes string }{
		{"watcher", "catalogues/latest", "batches/1"}, {"planner", "batches/1", "intents/1"}, {"disruption", "snapshots/1", "plans/1"},
		{"catalog", "markets/latest", "catalogues/latest"}, {"lifecycle", "plans/1", ""}, {"launcher", "intents/1", ""}, {"operator", "plans/1", ""}, {"replayer", "plans/1", ""},
	} {
		s3(c.who+" lists the other cluster's prefix", c.who, "ListBucket", bucket, key("s3:prefix", beside+"/"))
		s3(c.who+" lists our deleted bucket, re-created in another account", c.who, "ListBucket", bucket, theirs)
		s3(c.who+" executes a document from our deleted bucket, re-created in another account", c.who, "GetObject", object(cluster, c.reads), theirs)
		if c.writes != "" {
			s3(c.who+" writes to our deleted bucket, re-created in another account", c.who, "PutObject", object(cluster, c.writes), theirs)
		}
	}
	s3("planner lists the other cluster's bucket", "planner", "ListBucket", "arn:aws:s3:::joist-"+beside+"-"+account+"-"+region)
	s3("catalog changes the bucket's policy", "catalog", "PutBucketPolicy", bucket)
	s3("catalog changes the bucket's lifecycle rules", "catalog", "PutLifecycleConfiguration", bucket)
	s3("the other cluster's planner writes an intent", "neighbour/planner", "PutObject", object(cluster, "intents/1"))
	s3("the other cluster's launcher reads an intent", "neighbour/launcher", "GetObject", object(cluster, "intents/1"))
	s3("an administrator of another account reads a snapshot", "outsider", "GetObject", object(cluster, "snapshots/latest"))
	s3("an administrator of another account writes an intent", "outsider", "PutObject", object(cluster, "intents/1"))
	s3("planner reads without TLS", "planner", "GetObject", object(cluster, "batches/1"), key("aws:SecureTransport", "false"))
	s3("planner writes without TLS", "planner", "PutObject", object(cluster, "intents/1"), key("aws:SecureTransport", "false"))
	s3("an administrator reads without TLS", "administrator", "GetObject", object(cluster, "snapshots/latest"), key("aws:SecureTransport", "false"))
	s3("an operator writes an intent", "operator", "PutObject", object(cluster, "intents/1"))
	s3("a replayer writes an intent", "replayer", "PutObject", object(cluster, "intents/1"))
	s3("an operator reads the other cluster's snapshot", "operator", "GetObject", object(beside, "snapshots/latest"))
	return asPrincipal(storing, out...)
}

func attacksByReading() []attack {
	var out []call
	read := func(name, who, action, arn string, apart bool, contexts ...map[string][]string) {
		out = append(out, call{name: name, who: who, models: action, needs: singleCall(newCall(action, arn, contexts...)), apart: apart})
	}
	for _, who := range []string{"planner", "disruption", "lifecycle", "watcher"} {
		read(who+" describes instances", who, "ec2:DescribeInstances", "*", true)
	}
	for _, who := range services() {
		read(who+" reads a secret", who, "secretsmanager:GetSecretValue", "arn:aws:secretsmanager:"+region+":"+account+":secret:db", false)
		read(who+" reads a parameter of the account", who, "ssm:GetParameter", "arn:aws:ssm:"+region+":"+account+":parameter/prod/db-password", false)
	}
	for who, action := range map[string]string{"catalog": "DescribeInstances", "launcher": "DescribeInstances", "interruption": "DescribeInstances", "operator": "DescribeSubnets", "replayer": "DescribeSubnets"} {
		read(who+" calls "+action+" in another region", who, "ec2:"+action, "*", false, key("aws:RequestedRegion", away))
	}
	for _, c := range [][2]string{{"catalog", "ec2:DescribeInstanceAttribute"}, {"catalog", "ec2:GetConsoleOutput"}, {"catalog", "ec2:DescribeLaunchTemplateVersions"}, {"launcher", "ec2:DescribeLaunchTemplateVersions"}, {"catalog", "ec2:GetLaunchTemplateData"}} {
		read(c[0]+" reads user data with "+c[1][4:], c[0], c[1], "*", false)
	}
	eks := "arn:aws:eks:" + region + ":" + account + ":cluster/"
	read("catalog reads the other cluster", "catalog", "eks:DescribeCluster", eks+beside, false)
	read("catalog reads the other cluster's zonal shifts", "catalog", "arc-zonal-shift:GetManagedResource", eks+beside, false, key("arc-zonal-shift:ResourceIdentifier", eks+beside))
	read("catalog makes itself an access entry", "catalog", "eks:CreateAccessEntry", eks+cluster, false)
	read("launcher changes the cluster", "launcher", "eks:UpdateClusterConfig", eks+cluster, false)
	read("catalog starts a zonal shift", "catalog", "arc-zonal-shift:StartZonalShift", eks+cluster, false, key("arc-zonal-shift:ResourceIdentifier", eks+cluster))
	read("launcher decrypts with a KMS key", "launcher", "kms:Decrypt", "arn:aws:kms:"+region+":"+account+":key/1", false)
	read("launcher grants the use of a KMS key", "launcher", "kms:CreateGrant", "arn:aws:kms:"+region+":"+account+":key/1", false)
	read("launcher writes another function's log", "launcher", "logs:PutLogEvents", "arn:aws:logs:"+region+":"+account+":log-group:/aws/lambda/"+cluster+"-joist-planner:log-stream:1", false)
	read("launcher deletes its log", "launcher", "logs:DeleteLogGroup", "arn:aws:logs:"+region+":"+account+":log-group:/aws/lambda/"+cluster+"-joist-launcher:*", false)
	read("planner changes the launcher's code", "planner", "lambda:UpdateFunctionCode", function(cluster, "launcher"), false)
	read("planner invokes the launcher", "planner", "lambda:InvokeFunction", function(cluster, "launcher"), false)
	// A function processes its caller's records; the queue's policy does not apply.
	for _, who := range []string{"disruption", "interruption", "catalog", "lifecycle", "watcher", "replayer", "operator"} {
		read(who+" invokes the launcher", who, "lambda:InvokeFunction", function(cluster, "launcher"), false)
	}
	read("launcher invokes itself", "launcher", "lambda:InvokeFunction", function(cluster, "launcher"), false)
	read("planner invokes interruption", "planner", "lambda:InvokeFunction", function(cluster, "interruption"), false)
	read("launcher invokes the other cluster's launcher", "launcher", "lambda:InvokeFunction", function(beside, "launcher"), false)
	read("launcher changes its own environment", "launcher", "lambda:UpdateFunctionConfiguration", function(cluster, "launcher"), false)
	return sortAttacks(asPrincipal(reading, out...))
}
