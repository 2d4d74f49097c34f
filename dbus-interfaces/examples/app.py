#!/usr/bin/python3
"""An app that does heavy work of its own: it attaches itself, learns its budget and reads the pressure on it.

It needs no more than PyGObject, as any desktop app in Python has it. With `lease` the guard releases what the app
attached when the app leaves the bus, however it ends: nothing has to be undone.
"""

import subprocess
import sys
import time

from gi.repository import Gio, GLib

NAME, PATH = "org.workloadguard.Guard1", "/org/workloadguard/Guard1"


def main():
    # What does the heavy work. It goes with the app that started it, into the same workload.
    worker = subprocess.Popen(["sleep", "3600"])
    print(f"worker: {worker.pid}", flush=True)

    bus = Gio.bus_get_sync(Gio.BusType.SESSION)

    def call(interface, path, method, arguments):
        reply = bus.call_sync(NAME, path, interface, method, arguments, None, 0, -1)
        return reply.unpack()

    def get(interface, path, name):
        arguments = GLib.Variant("(ss)", (interface, name))
        return call("org.freedesktop.DBus.Properties", path, "Get", arguments)[0]

    # PID 0 is the caller, as the bus knows it.
    options = {"lease": GLib.Variant("b", True), "reason": GLib.Variant("s", "an example")}
    arguments = GLib.Variant("(ausa{sv})", ([0], "heavy", options))
    try:
        (workload,) = call(NAME, PATH, "Attach", arguments)
    except GLib.Error as error:
        # org.workloadguard.Error.* says what it was: Gio.DBusError.get_remote_error(error).
        sys.exit(f"the guard refuses: {error.message}")
    print(f"workload: {workload}", flush=True)

    for row in get(NAME, PATH, "Classes"):
        if row[0] == "heavy":
            print(f"budget: {row[2]}% of a CPU in {row[1]}" if row[2] else "budget: none", flush=True)

    group = get("org.workloadguard.Workload1", workload, "ControlGroup")
    while True:
        try:
            with open(f"/sys/fs/cgroup{group}/cpu.pressure", encoding="ascii") as file:
                print(f"pressure: {file.readline().strip()}", flush=True)
        except OSError as error:
            print(f"pressure: not told here ({error.strerror})", flush=True)
        time.sleep(2)


if __name__ == "__main__":
    main()
