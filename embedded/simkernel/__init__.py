"""A kernel's cgroup v2 imitated from user space, for a person without root or writable cgroups.

    tree        directories and control files as cgroup v2 has them, as plain files below a directory of ours
    table       processes of this machine (/proc)
    membership  which of them are in which cgroup: children are where their parents are
    limits      what the control files ask for: quota by stopping, weight by niceness, memory by killing
    accounts    what the counters say
    files       the control files of one cgroup, open
    kernel      one step: look, count, limit, write
    __main__    the program that steps, in a process of its own so that nobody's work holds it up

Pods are real processes of the person who runs them. What only a kernel can do is not claimed: usage is counted in
steps of 10 ms, page cache and shared memory are nobody's, a limit acts some 25 ms late, a priority only ever falls.
"""
