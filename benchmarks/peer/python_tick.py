#!/usr/bin/env python3
"""The polling loop of the Python original, written anew from its description, as a peer to compare with.

One tick: two calls of `systemctl --user show UNIT --property=ControlGroup --value`, a walk of the parent's
control group tree that reads every cgroup.procs, then /proc/PID/cmdline and /proc/PID/stat of each PID.
Where no systemd user manager answers, the two calls are left out, and the output says so.

usage: python_tick.py CGROUP_FOLDER TICKS
"""

import json
import os
import resource
import subprocess
import sys

UNITS = ("protected-workload.slice", "heavy-workload.slice")
WARM_UP = 2


def control_group(unit):
    """The control group of a unit, as systemctl tells it; None when there is no manager to ask."""
    try:
        shown = subprocess.run(
            ["systemctl", "--user", "show", unit, "--property=ControlGroup", "--value"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return shown.stdout.strip() if shown.returncode == 0 else None


def pids_below(folder):
    """Every PID of the tree."""
    pids = []
    for path, folders, files in os.walk(folder):
        if "cgroup.procs" in files:
            try:
                with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as procs:
                    pids += [int(line) for line in procs]
            except OSError:
                continue
    return pids


def read_process(pid):
    """The joined command line and the CPU time in ticks; None when the process is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            command = cmdline.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return command, int(fields[11]) + int(fields[12])


def tick(folder, with_systemctl):
    """One look; answers how many processes it showed."""
    if with_systemctl:
        for unit in UNITS:
            control_group(unit)
    return sum(read_process(pid) is not None for pid in pids_below(folder))


def cpu_usec():
    """User and system CPU time of this process and of its finished subprocesses."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return tuple(round(sum(times) * 1e6) for times in zip(*((u.ru_utime, u.ru_stime) for u in usages)))


def rss_kib():
    """Resident memory of this process."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def main():
    folder, ticks = sys.argv[1], int(sys.argv[2])
    with_systemctl = control_group(UNITS[0]) is not None
    before = rss_kib()
    for _ in range(WARM_UP):
        tick(folder, with_systemctl)
    user, system = cpu_usec()
    processes = 0
    for _ in range(ticks):
        processes = tick(folder, with_systemctl)
    user_after, system_after = cpu_usec()
    print(
        json.dumps(
            {
                "processes": processes,
                "ticks": ticks,
                "user_usec": user_after - user,
                "system_usec": system_after - system,
                "rss_before_kib": before,
                "rss_kib": rss_kib(),
                "systemctl_calls": len(UNITS) if with_systemctl else 0,
            }
        )
    )


if __name__ == "__main__":
    main()
