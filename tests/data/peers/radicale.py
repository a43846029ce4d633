"""Makes a calendar in a running Radicale, and shows what is in it, as another program does."""

import base64
import sys
import urllib.request

base, action = sys.argv[1], sys.argv[2]
login = base64.b64encode(b"ann@example.org:hidden-word").decode()


def send(method, path, body=None):
    request = urllib.request.Request(base + path, method=method, data=body)
    request.add_header("Authorization", f"Basic {login}")
    request.add_header("Content-Type", "text/calendar" if method == "PUT" else "text/xml")
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


home = "/ann@example.org/home/"
if action == "make":
    send("MKCALENDAR", home, b"""<?xml version="1.0"?>
        <c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>
        <d:displayname>Home</d:displayname></d:prop></d:set></c:mkcalendar>""")
    event = "\r\n".join([
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//X//X//EN", "BEGIN:VEVENT", "UID:choir",
        "DTSTAMP:20200101T000000Z", "SUMMARY:Choir & <tea>",
        f"DTSTART:{sys.argv[3]}T180000Z", f"DTEND:{sys.argv[3]}T193000Z",
        "RRULE:FREQ=DAILY;COUNT=3", "END:VEVENT", "END:VCALENDAR", "",
    ])
    send("PUT", home + "choir.ics", event.encode())
else:
    print(send("GET", home))
