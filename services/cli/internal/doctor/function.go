package doctor

import (
	"path"
	"time"

	"github.com/joist-autoscaler/joist/shared/settings"
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

// takes reports whether the function works for the cluster with a role that it takes.
func (f *Function) takes() bool { return f != nil && f.Shared != nil && f.Shared.Role != "" }

// apart reports whether the function may work on the queue with another role than the
// cluster's.
func (f *Function) apart() bool {
	return f != nil && (f.Role == "" || f.Shared != nil && !f.Shared.Told || f.takes())
}

// functions finds functions that are gone, or that no queue invokes.
func functions(f Facts) []Finding {
	return each(f, func(p topology.Queue, q *Queue) []Finding {
		fn := f.Functions[p.Service]
		switch {
		case fn != nil && fn.Missing:
			return []Finding{problem("function-missing", "function/"+fn.Name, "there is no such function, which the event source mapping of "+q.Name+" names: unless something polls the queue, messages wait until they expire",
				deploy+", which makes it; where the service polls, aws lambda delete-event-source-mapping")}
		case fn == nil || fn.Enabled:
			return nil
		case !fn.Mapped:
			return []Finding{problem("mapping-missing", "function/"+fn.Name, "it is not invoked for the messages of "+q.Name, "aws lambda create-event-source-mapping, or "+deploy)}
		}
		return []Finding{problem("mapping-disabled", "function/"+fn.Name, "its event source mapping of "+q.Name+" is disabled: messages wait until they expire", "aws lambda update-event-source-mapping --enabled")}
	})
}

// shared finds functions that clusters share, and that cannot work for this one.
func shared(f Facts) []Finding {
	return each(f, func(p topology.Queue, q *Queue) []Finding {
		fn := f.Functions[p.Service]
		if fn == nil || fn.Shared == nil {
			return nil
		}
		session := topology.Session(p.Service, f.Plan.Cluster)
		switch {
		case !fn.Shared.Told:
			return []Finding{problem("function-untold", "function/"+fn.Name,
				"clusters share it, and no object of its "+settings.Clusters+" has this cluster with the queue "+q.Name+": it handles none of its messages, which come again until they are parked", deploy)}
		case fn.takes() && fn.Shared.Trust != nil && !lets(*fn.Shared.Trust, fn.Role, session):
			role := path.Base(fn.Shared.Role)
			return []Finding{problem("trust-function", "role/"+role,
				"it does not let "+fn.Role+" take it as the session "+session+": the function "+fn.Name+" handles no message of this cluster, and they come again until they are parked",
				"let that role do sts:AssumeRole under that name: aws iam update-assume-role-policy --role-name "+role+" --policy-document file://trust.json, or "+deploy)}
		}
		return nil
	})
}
