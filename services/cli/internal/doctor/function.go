package doctor

import (
	"path"
	"time"

	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Function is what Lambda says of the function that works on a service's queue, whatever
// it is called.
type Function struct {
	Name string
	// Role is its role's ARN, or "" where it is not known whether it works with that.
	Role    string
	Timeout time.Duration
	// Missing says that there is no such function, though a mapping names it: nothing else
	// is known of it then.
	Missing bool
	// Mapped says that an event source mapping hands it the queue's messages, and Enabled
	// that the mapping does so now.
	Mapped, Enabled bool
	// Bucket is where it is told that documents lie, or "".
	Bucket string
	// Shared is nil where the function is the cluster's own.
	Shared *Shared
}

// Shared is what a function that several clusters share is told of this one.
type Shared struct {
	// Told says that it is told that the queue is this cluster's.
	Told bool
	// Role is the ARN of the role that it takes to work for the cluster, or "" where it
	// works with its own.
	Role string
	// Trust is the trust policy of that role; nil when that was not looked at.
	Trust *string
}

// takesRole reports whether the function works for the cluster with a role that it takes.
func (f *Function) takesRole() bool { return f != nil && f.Shared != nil && f.Shared.Role != "" }

// apart reports whether the function may work on the queue with another role than the
// cluster's.
func (f *Function) apart() bool {
	return f != nil && (f.Role == "" || f.Shared != nil && !f.Shared.Told || f.takesRole())
}

// checkFunctions finds functions that are gone, or that no queue invokes.
func checkFunctions(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		fn := f.Functions[p.Service]
		switch {
		case fn != nil && fn.Missing:
			return []Finding{newProblem("function-missing", "function/"+fn.Name, "the function does not exist, but the event source mapping of "+q.Name+" names it: messages expire unless something else polls the queue",
				deploy+", which creates it; if the service polls the queue instead, aws lambda delete-event-source-mapping")}
		case fn == nil || fn.Enabled:
			return nil
		case !fn.Mapped:
			return []Finding{newProblem("mapping-missing", "function/"+fn.Name, "no event source mapping invokes the function for messages of "+q.Name, "aws lambda create-event-source-mapping, or "+deploy)}
		}
		return []Finding{newProblem("mapping-disabled", "function/"+fn.Name, "the event source mapping of "+q.Name+" is disabled: messages wait until they expire", "aws lambda update-event-source-mapping --enabled")}
	})
}

// checkShared finds functions that clusters share, and that cannot work for this one.
func checkShared(f Facts) []Finding {
	return forEachQueue(f, func(p topology.Queue, q *Queue) []Finding {
		fn := f.Functions[p.Service]
		if fn == nil || fn.Shared == nil {
			return nil
		}
		session := topology.Session(p.Service, f.Plan.Cluster)
		switch {
		case !fn.Shared.Told:
			return []Finding{newProblem("function-untold", "function/"+fn.Name,
				"clusters share the function, and no object of its "+settings.Clusters+" has this cluster with the queue "+q.Name+": it handles none of the cluster's messages, which are retried until they move to the dead-letter queue", deploy)}
		case fn.takesRole() && fn.Shared.Trust != nil && !allowsSession(*fn.Shared.Trust, fn.Role, session):
			role := path.Base(fn.Shared.Role)
			return []Finding{newProblem("trust-function", "role/"+role,
				"the trust policy does not let "+fn.Role+" assume the role with session name "+session+": the function "+fn.Name+" handles no message of this cluster, and messages are retried until they move to the dead-letter queue",
				"allow that role sts:AssumeRole with that session name: aws iam update-assume-role-policy --role-name "+role+" --policy-document file://trust.json, or "+deploy)}
		}
		return nil
	})
}
