#!/bin/sh
# A server of the Model Context Protocol for tests, in a shell so that they need
# nothing else. It notes every line it gets in the file $STUB_NOTES, and its
# process id in $STUB_NOTES.pid, a file that is there only when it is whole.
# STUB_NAGS lets it say after each list that its
# tools changed, and STUB_GROWS that they do so each time; STUB_DEAF lets it ignore the end of its input and SIGTERM.
echo "$$" >"$STUB_NOTES.pid.new"
mv "$STUB_NOTES.pid.new" "$STUB_NOTES.pid"
more=
say() { printf '%s\n' "$1"; }
result() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
text() { result "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
changed() { say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; }
tool() {
  printf '{"name":"%s","description":"Does %s.","inputSchema":{"type":"object","properties":{%s}}' "$1" "$1" "$2"
  printf ',"annotations":{"title":"%s","readOnlyHint":true,"destructiveHint":false}}' "Title of $1"
}

echo "the stub starts" >&2
echo "Listening on stdio"
[ -z "$STUB_DEAF" ] || trap '' TERM

while read -r line; do
  printf '%s\n' "$line" >>"$STUB_NOTES"
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
  *'"method":"initialize"'*)
    result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"stub","version":"1"}}'
    ;;
  *'"method":"notifications/initialized"'*)
    changed
    ;;
  *'"method":"tools/list"'*'"cursor":"two"'*)
    tools=$(tool env; printf ,; tool big; printf ,; tool noise; printf ,; tool fail; printf ,; tool ask; printf ,; tool "dots.and spaces")
    result "{\"tools\":[$tools$more],\"nextCursor\":\"two\"}"
    [ -z "$STUB_NAGS" ] || changed
    [ -z "$STUB_GROWS" ] || { more=$more,$(tool "sprout$id"); changed; }
    ;;
  *'"method":"tools/list"'*)
    tools=$(tool echo '"text":{"type":"string"},"times":{"type":["integer","null"]}'; printf ,; tool hang; printf ,; tool steady; printf ,; tool crash; printf ,; tool grow)
    result "{\"tools\":[$tools],\"nextCursor\":\"two\"}"
    ;;
  *'"method":"tools/call"'*'"name":"echo"'*)
    said=${line#*'"text":"'}
    text "you said: ${said%%\"*}"
    ;;
  *'"method":"tools/call"'*'"name":"hang"'*) ;;
  *'"method":"tools/call"'*'"name":"steady"'*)
    for step in 1 2 3 4 5 6 7 8 9; do
      say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$id,\"progress\":$step}}"
      sleep 0.3
    done
    text "nine steps"
    ;;
  *'"method":"tools/call"'*'"name":"crash"'*)
    echo "Error: the stub has no more strength" >&2
    exit 3
    ;;
  *'"method":"tools/call"'*'"name":"grow"'*)
    more=,$(tool sprout)
    text "grown"
    changed
    ;;
  *'"method":"tools/call"'*'"name":"env"'*)
    text "$(env | sed 's/=.*//' | sort | tr '\n' ' ')"
    ;;
  *'"method":"tools/call"'*'"name":"big"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
    head -c 9000000 /dev/zero | tr '\0' x
    say '"}]}}'
    ;;
  *'"method":"tools/call"'*'"name":"noise"'*)
    head -c 20000000 /dev/zero | tr '\0' n
    say ''
    say '{"level":"info","msg":"not a message"}'
    head -c 3000000 /dev/zero | tr '\0' '\n' >&2
    head -c 3000000 /dev/urandom >&2
    text "quiet again"
    ;;
  *'"method":"tools/call"'*'"name":"fail"'*)
    result '{"content":[{"type":"text","text":"no such room"}],"isError":true}'
    ;;
  *'"method":"tools/call"'*'"name":"ask"'*)
    waiting=$id
    say '{"jsonrpc":"2.0","id":"q1","method":"ping"}'
    say '{"jsonrpc":"2.0","id":"q2","method":"sampling/createMessage","params":{}}'
    ;;
  *'"id":"q2"'*)
    id=$waiting
    text "asked"
    ;;
  esac
done
[ -z "$STUB_DEAF" ] || while :; do sleep 1; done
