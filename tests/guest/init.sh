#!/bin/busybox sh
# First process of the guest: the host's / below a tmpfs, so that all files are there and no write stays; /out is shared.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in $($b cat /modules/order); do
  $b insmod "/modules/$module" || $b dmesg | $b tail -5
done
for word in $($b cat /proc/cmdline); do
  case $word in out=*) out=${word#out=} ;; esac
done
$b mkdir -p /lower /upper /new
$b mount -t virtiofs host /lower
$b mount -t tmpfs -o size=50% upper /upper
$b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /new
for folder in dev proc sys; do $b mount --move /$folder /new/$folder; done
$b mount -t cgroup2 none /new/sys/fs/cgroup
$b mkdir -p /new/out
$b mount --bind "/lower$out" /new/out
$b ip link set lo up
exec $b switch_root /new /bin/bash /out/job.sh
