"""What a coding agent does: puts its work into a class, and holds routing, for as long as it lives."""

import sys
import time

import dbus

bus = dbus.SessionBus()
guard = dbus.Interface(
    bus.get_object("org.workloadguard.Guard1", "/org/workloadguard/Guard1"),
    "org.workloadguard.Guard1",
)
lease = dbus.Dictionary({"lease": True, "reason": "an agent at work"}, signature="sv")
print(guard.Attach(dbus.Array([int(sys.argv[1])], signature="u"), "heavy", lease))
print(guard.Pause(lease), flush=True)
time.sleep(3600)
