"""Number limits of best effort and its pods: of processes (`process_limits`) and of cgroups (`cgroup_limits`)."""
