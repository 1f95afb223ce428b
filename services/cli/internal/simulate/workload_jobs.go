package simulate

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// addJob creates the pods of a Job that run concurrently.
func (e *expansion) addJob(o *batchv1.Job) {
	for _, c := range o.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return
		}
	}
	e.addReplicas(o, "Job", "Job", o.Spec.Template, parallelPods(o.Spec))
}

// addCronJob creates the pods of one run, unless the objects have a run.
func (e *expansion) addCronJob(o *batchv1.CronJob) {
	if e.hasPodsOf(o.Namespace, "CronJob", o.Name) {
		return
	}
	if o.Spec.Suspend != nil && *o.Spec.Suspend {
		e.addNote("CronJob %s is suspended and ignored", cluster.KeyOf(o))
		return
	}
	e.addNote("CronJob %s is planned with the pods of one run", cluster.KeyOf(o))
	run := &batchv1.Job{ObjectMeta: *o.Spec.JobTemplate.ObjectMeta.DeepCopy(), Spec: o.Spec.JobTemplate.Spec}
	run.Name, run.Namespace = baseName(o), o.Namespace
	e.addJob(run)
}

// parallelPods returns the number of pods of a Job that run concurrently.
func parallelPods(spec batchv1.JobSpec) *int32 {
	parallel := int32(1)
	if spec.Parallelism != nil {
		parallel = *spec.Parallelism
	}
	if spec.Completions != nil {
		parallel = min(parallel, *spec.Completions)
	}
	if spec.Suspend != nil && *spec.Suspend {
		parallel = 0
	}
	return &parallel
}
