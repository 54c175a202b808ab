"""Recover: the job loop. What happens to a job when it fails, stalls, or has to leave a node.

The decisions are pure functions over objects as they are now:

    adapters    one file per kind of job: its ranks, its pod templates, how it ends
    ends        how one rank ended: exit code and signal normalised, disruptions told apart
    signs       what a Node shows that would end a job
    logs        what a log tail shows, and its fingerprint
    root        which rank failed first
    classify    Hardware | Transient | Workload | SharedCause | Policy | Unknown, with reasons
    choose      verdict, history and budget -> what to do
    late        evidence that comes after the verdict
    phases      one job, one moment -> its record as it should be

Fence before release: a suspect is isolated where the scheduler sees it or excluded in the job's own affinity, the old
gang is proved gone, and only then is the new attempt let go; where it landed is looked at afterwards.

`controller` around them reads informers, writes the record, and only then acts: what is done to the job follows from
the record and the job alone, so that a crash between the two changes nothing.
"""
