package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// observation is what Kubernetes records about an object, and what it lacks.
type observation struct {
	trace.Entries
	missing []string
}

// observeObject reads the object in the running cluster, unless the documents of --store are read instead, and
// adds its NodeClaim, node, instance and trace to the query. The logs may have an object that the cluster does
// not have, or that cannot be read there: if they are given, this is only noted.
func observeObject(cmd *cobra.Command, env Env, flags traceFlags, asked object, query *trace.Query) (out observation, err error) {
	isChosen := cmd.Flags().Changed("context") || cmd.Flags().Changed("kubeconfig")
	if asked.kind == "" || flags.kube.offline || flags.store != "" && !isChosen {
		return out, nil
	}
	objects, namespace, err := readTraced(cmd, env, flags, asked)
	hasLogs := flags.hasLogs(env)
	switch {
	case err != nil && (cmd.Context().Err() != nil || !hasLogs || isChosen && !fault.Is(err, fault.Missing)):
		return out, err
	case err != nil:
		out.missing = append(out.missing, "conditions and events of "+query.Title+" in Kubernetes: "+oneLine(awsfault.ErrorText(err)))
	}
	objects.AddTo(query, &out.Entries)
	out.missing = append(out.missing, objects.Missing...)
	if err == nil {
		out.missing = append(out.missing, describeClaims(objects, query.Title, asked.kind)...)
		if !hasLogs {
			out.missing = append(out.missing, describeLogs(namespace, query.IDs))
		}
	}
	return out, nil
}

// hasLogs reports whether the messages are read from logs, spans or documents.
func (f traceFlags) hasLogs(env Env) bool {
	return len(f.logs)+len(f.spans) > 0 || f.store != "" || f.cluster.clusterName(env) != ""
}

// describeClaims describes what the NodeClaims of the object lack.
func describeClaims(objects trace.ClusterObjects, title, kind string) []string {
	var out []string
	for _, name := range objects.ListUntracedClaims() {
		out = append(out, fmt.Sprintf("NodeClaim %s has no annotation %s, so Joist has not launched it: messages are found by its name only", name, planning.TraceAnnotation))
	}
	if len(objects.Claims) == 0 {
		out = append(out, "no NodeClaim belongs to "+title+": joist explain "+kind+" says why")
	}
	return out
}

// readTraced reads the object and the objects that belong to it, and the namespace of Joist.
func readTraced(cmd *cobra.Command, env Env, flags traceFlags, asked object) (out trace.ClusterObjects, namespace string, err error) {
	read, err := env.openCluster(flags.kube)
	if err != nil {
		return out, "", err
	}
	if out, err = trace.ReadClusterObjects(cmd.Context(), read, asked.kind, flags.namespace, asked.name); err != nil {
		return out, "", err
	}
	return out, env.findJoistNamespace(cmd.Context(), read, ""), nil
}

// describeLogs describes which logs have the messages of the services.
func describeLogs(namespace string, ids []string) string {
	of := ""
	if len(ids) > 0 {
		of = " of " + strings.Join(ids, ", ")
	}
	return "the messages of the services" + of + ": --cluster NAME searches the audit log and the functions' logs in CloudWatch, " +
		"--log reads exports of them and kubectl logs -n " + namespace + " deployment/joist-lifecycle (and joist-watcher), and --otlp spans"
}
