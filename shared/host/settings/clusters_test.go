package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/settings"
)

// Without a list there is one cluster, with the settings that Read returns.
func TestReadClustersWithoutList(t *testing.T) {
	env := environment(map[string]string{"CLUSTER_NAME": "prod", "JOIST_BUS": "b"})
	want, err := settings.Read(env)
	if err != nil {
		t.Fatal(err)
	}
	got, err := settings.ReadClusters(env, settings.ClusterName)
	if diff := cmp.Diff([]settings.Settings{want}, got); diff != "" || err != nil {
		t.Errorf("%v%s", err, diff)
	}
}

// An entry's variables apply to its cluster only; the environment applies to all.
func TestReadClusters(t *testing.T) {
	got, err := settings.ReadClusters(environment(map[string]string{
		"JOIST_BUCKET": "docs", "JOIST_BUS": "all", "CLUSTER_NAME": "empty list", "LOG_LEVEL": "debug",
		"JOIST_CLUSTERS": `[
			{"JOIST_CLUSTER_NAME":"prod","JOIST_CLUSTER_UID":"u1","JOIST_PREFIX":"prod","JOIST_QUEUE_URL":"https://q/1","JOIST_DEAD_LETTER_URL":"https://q/2","JOIST_ROLE_ARN":"arn:aws:iam::111122223333:role/prod-joist-planner"},
			{"JOIST_CLUSTER_NAME":"staging","JOIST_BUS":"staging","JOIST_QUEUE_URL":"https://q/3","JOIST_MAX_INSTANCES_PER_INTENT":"7"}]`,
	}), settings.Bucket, settings.Bus)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d clusters: %v", len(got), err)
	}
	one, two := got[0], got[1]
	if one.Cluster.Name != "prod" || one.Cluster.UID != "u1" || one.Prefix != "prod" || one.QueueURL != "https://q/1" || one.DeadLetterURL != "https://q/2" ||
		one.RoleARN != "arn:aws:iam::111122223333:role/prod-joist-planner" || one.Bus != "all" || one.Bucket != "docs" || one.MaxPerIntent != 500 {
		t.Errorf("first cluster = %+v", one)
	}
	if two.Cluster.Name != "staging" || two.Cluster.UID != "" || two.Prefix != "" || two.Bus != "staging" || two.QueueURL != "https://q/3" || two.RoleARN != "" ||
		two.Bucket != "docs" || two.MaxPerIntent != 7 || two.LogLevel != one.LogLevel {
		t.Errorf("second cluster = %+v", two)
	}
}

// docs is a list of two clusters that share nothing except, possibly, the document settings.
func docs(one, two string) string {
	return `[{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"https://q/1",` + one + `},{"JOIST_CLUSTER_NAME":"staging","JOIST_QUEUE_URL":"https://q/3",` + two + `}]`
}

// Clusters may share a bucket or a prefix, and a service without documents has neither.
func TestReadClustersAcceptsSharedBucket(t *testing.T) {
	for name, list := range map[string]string{
		"prefixes":     docs(`"JOIST_BUCKET":"docs","JOIST_PREFIX":"a"`, `"JOIST_BUCKET":"docs","JOIST_PREFIX":"b"`),
		"buckets":      docs(`"JOIST_BUCKET":"docs"`, `"JOIST_BUCKET":"others"`),
		"no documents": docs(`"JOIST_PREFIX":"a"`, `"JOIST_PREFIX":"a"`),
	} {
		if _, err := settings.ReadClusters(environment(map[string]string{"JOIST_CLUSTERS": list})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadClustersRejects(t *testing.T) {
	const whole = `{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"https://q/1","JOIST_DEAD_LETTER_URL":"https://q/2"}`
	for name, test := range map[string]struct{ list, says string }{
		"only names":              {`["prod"]`, "not a JSON list of objects"},
		"empty list":              {`[]`, "not a JSON list of objects"},
		"not JSON":                {`prod,staging`, "not a JSON list of objects"},
		"a number":                {`[{"JOIST_MAX_INSTANCES_PER_INTENT":7}]`, "not a JSON list of objects"},
		"an unknown name":         {`[{"JOIST_NAME":"prod"}]`, "unknown variable JOIST_NAME in object 0"},
		"Karpenter's name":        {`[{"CLUSTER_NAME":"prod"}]`, "unknown variable CLUSTER_NAME"},
		"a process-wide variable": {`[{"JOIST_CLUSTER_NAME":"prod","LOG_LEVEL":"debug"}]`, "set it as an environment variable"},
		"a list in the list":      {`[{"JOIST_CLUSTERS":"[]"}]`, "applies to the whole process"},
		"no queue":                {`[{"JOIST_CLUSTER_NAME":"prod"}]`, "JOIST_CLUSTERS[0]: reading the environment: JOIST_QUEUE_URL is not set"},
		"no name":                 {`[` + whole + `,{"JOIST_QUEUE_URL":"https://q/3"}]`, "JOIST_CLUSTERS[1]: reading the environment: JOIST_CLUSTER_NAME is not set"},
		"a wrong value":           {`[{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"prod"}]`, `JOIST_QUEUE_URL="prod" is not a URL`},
		"a wrong role":            {`[{"JOIST_CLUSTER_NAME":"prod","JOIST_QUEUE_URL":"https://q/1","JOIST_ROLE_ARN":"prod-joist-planner"}]`, "is not the ARN of a role"},
		"duplicate cluster":       {`[` + whole + `,` + whole + `]`, "JOIST_CLUSTERS[1] has the JOIST_CLUSTER_NAME=prod of JOIST_CLUSTERS[0]"},
		"duplicate queue":         {`[` + whole + `,{"JOIST_CLUSTER_NAME":"staging","JOIST_QUEUE_URL":"https://q/1"}]`, "has the JOIST_QUEUE_URL=https://q/1 of"},
		"duplicate DLQ":           {`[` + whole + `,{"JOIST_CLUSTER_NAME":"staging","JOIST_QUEUE_URL":"https://q/3","JOIST_DEAD_LETTER_URL":"https://q/2"}]`, "has the JOIST_DEAD_LETTER_URL="},
		"no prefixes":             {docs(`"JOIST_BUCKET":"docs"`, `"JOIST_BUCKET":"docs"`), "JOIST_CLUSTERS[1] has the JOIST_PREFIX= in the bucket docs of JOIST_CLUSTERS[0]"},
		"duplicate prefix":        {docs(`"JOIST_BUCKET":"docs","JOIST_PREFIX":"a"`, `"JOIST_BUCKET":"docs","JOIST_PREFIX":"a/"`), "has the JOIST_PREFIX=a in the bucket docs of"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settings.ReadClusters(environment(map[string]string{"JOIST_CLUSTERS": test.list}))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want it to contain %q", err, test.says)
			}
		})
	}
}
