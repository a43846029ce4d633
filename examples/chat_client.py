#!/usr/bin/env python3
"""A complete client with nothing but Python's standard library: JSON lines over TCP.

    export HEARTH_TOKEN=$(hearth token create --name python --role user)
    python3 examples/chat_client.py "What time is it?" [HOST] [PORT]
"""
import json, os, socket, sys

question = sys.argv[1] if len(sys.argv) > 1 else "Hello!"
host = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
port = int(sys.argv[3]) if len(sys.argv) > 3 else 5000

with socket.create_connection((host, port), timeout=300) as connection:
    lines = connection.makefile("rw", encoding="utf-8", newline="\n")
    for request in [{"type": "auth", "token": os.environ["HEARTH_TOKEN"]}, {"type": "chat", "message": question}]:
        print(json.dumps(request), file=lines, flush=True)
        response = json.loads(lines.readline() or '{"error": "the server closed the connection"}')
        if response.get("status") != "ok":
            sys.exit(response["error"])
    print(response["data"]["response"])
