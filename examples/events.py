#!/usr/bin/env python3
"""Prints what is said at home, with nothing but Python's standard library; goes on where it was
after a lost connection.

    export HEARTH_TOKEN=$(hearth token create --name dashboard --role viewer)
    python3 examples/events.py [http://127.0.0.1:5000]
"""
import json, os, sys, time, urllib.error, urllib.request

server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:5000"
request = urllib.request.Request(f"{server}/events?events=message.created")
request.add_header("Authorization", "Bearer " + os.environ["HEARTH_TOKEN"])
while True:
    try:
        # Without an event, a comment comes every 15 seconds.
        for line in urllib.request.urlopen(request, timeout=60):
            field, _, value = line.decode().strip().partition(": ")
            if field == "data" and "message" in json.loads(value):
                print(json.loads(value)["message"]["content"], flush=True)
            elif field == "id":
                request.add_header("Last-Event-ID", value)
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode()}")
    except OSError as error:
        print(error, file=sys.stderr)
    time.sleep(2)
