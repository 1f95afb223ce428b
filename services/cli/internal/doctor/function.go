package doctor

import (
	"path"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Function is the Lambda function that consumes a service's queue, with any name.
type Function struct {
	Name string
	// Role is the ARN of its role, or "" if it may use another one.
	Role    string
	Timeout time.Duration
	// Missing reports that the function does not exist, although a mapping names it. Nothing else
	// is known then.
	Missing bool
	// Mapped reports that an event source mapping invokes it for the queue's messages, and
	// Enabled that the mapping is enabled.
	Mapped, Enabled bool
	// Bucket is the bucket in its settings, or "".
	Bucket string
	// Shared is nil unless several clusters share the function.
	Shared *Shared
}

// Shared is the configuration of a shared function for this cluster.
type Shared struct {
	// HasEntry reports that its list of clusters has this cluster with this queue.
	HasEntry bool
	// Role is the ARN of the role that it assumes for this cluster, or "" if it uses its own.
	Role string
	// Trust is the trust policy of that role; nil if it was not read.
	Trust *string
}

// takesRole reports whether the function assumes a role for the cluster.
func (f *Function) takesRole() bool { return f != nil && f.Shared != nil && f.Shared.Role != "" }

// usesOtherRole reports whether the function may consume the queue with a role other than the
// cluster's.
func (f *Function) usesOtherRole() bool {
	return f != nil && (f.Role == "" || f.Shared != nil && !f.Shared.HasEntry || f.takesRole())
}

// checkFunctions finds missing functions, and functions that no queue invokes.
func checkFunctions(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		fn := f.Functions[p.Service]
		switch {
		case fn != nil && fn.Missing:
			return []Finding{newProblem("function-missing", "function/"+fn.Name, "the function does not exist, but the event source mapping of "+q.Name+" names it: messages expire unless something else polls the queue",
				deployFix+", which creates it; if the service polls the queue instead, aws lambda delete-event-source-mapping")}
		case fn == nil || fn.Enabled:
			return nil
		case !fn.Mapped:
			return []Finding{newProblem("event-source-mapping-missing", "function/"+fn.Name, "no event source mapping invokes the function for messages of "+q.Name, "aws lambda create-event-source-mapping, or "+deployFix)}
		}
		return []Finding{newProblem("event-source-mapping-disabled", "function/"+fn.Name, "the event source mapping of "+q.Name+" is disabled: messages wait until they expire", "aws lambda update-event-source-mapping --enabled")}
	})
}

// checkShared finds shared functions that cannot work for this cluster.
func checkShared(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		fn := f.Functions[p.Service]
		if fn == nil || fn.Shared == nil {
			return nil
		}
		session := topology.RoleSessionName(p.Service, f.Plan.Cluster)
		switch {
		case !fn.Shared.HasEntry:
			return []Finding{newProblem("function-settings-missing", "function/"+fn.Name,
				"clusters share the function, and no object of its "+settings.Clusters+" has this cluster with the queue "+q.Name+": it handles none of the cluster's messages, which are retried until they move to the DLQ", deployFix)}
		case fn.takesRole() && fn.Shared.Trust != nil && !allowsSession(*fn.Shared.Trust, fn.Role, session):
			role := path.Base(fn.Shared.Role)
			return []Finding{newProblem("trust-function", "role/"+role,
				"the trust policy does not let "+fn.Role+" assume the role with session name "+session+": the function "+fn.Name+" handles no message of this cluster, and messages are retried until they move to the DLQ",
				"allow that role sts:AssumeRole with that session name: aws iam update-assume-role-policy --role-name "+role+" --policy-document file://trust.json, or "+deployFix)}
		}
		return nil
	})
}
