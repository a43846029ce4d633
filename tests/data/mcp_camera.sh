#!/bin/sh
# A server of the Model Context Protocol for tests, with one tool that answers with a
# picture. It notes each call in the file $STUB_NOTES.
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }

while read -r line; do
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
  *'"method":"initialize"'*)
    result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"camera","version":"1"}}'
    ;;
  *'"method":"tools/list"'*)
    result '{"tools":[{"name":"look","description":"Looks out of the window.","inputSchema":{"type":"object"}}]}'
    ;;
  *'"method":"tools/call"'*)
    echo call >>"$STUB_NOTES"
    result '{"content":[{"type":"text","text":"The garden:"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}]}'
    ;;
  esac
done
