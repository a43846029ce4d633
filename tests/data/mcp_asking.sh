#!/bin/sh
# A server of the Model Context Protocol that asks the person. It notes every line it gets in
# the file $STUB_NOTES. STUB_REVISION is the revision that it speaks.
say() { printf '%s\n' "$1"; }
result() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
text() { result "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }
ask() { say "{\"jsonrpc\":\"2.0\",\"id\":\"$1\",\"method\":\"elicitation/create\",\"params\":$2}"; }
form() { printf '{"message":"%s","requestedSchema":{"type":"object","properties":%s,"required":%s}}' "$1" "$2" "$3"; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}},' "$1"; }

while read -r line; do
  printf '%s\n' "$line" >>"$STUB_NOTES"
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
  *'"method":"initialize"'*)
    result "$id" "{\"protocolVersion\":\"${STUB_REVISION:-2025-11-25}\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"asking\",\"version\":\"1\"}}"
    ;;
  *'"method":"tools/list"'*)
    tools=$(tool book; tool confirm; tool address; tool nested; tool two; tool regret; tool hurry; tool echo; tool slow; tool after; tool idle)
    result "$id" "{\"tools\":[${tools%,}]}"
    ;;
  *'"method":"tools/call"'*'"name":"echo"'*) text "$id" here ;;
  *'"method":"tools/call"'*'"name":"book"'*)
    waiting=$id
    ask e1 "$(form 'Which room?' '{"room":{"type":"string","title":"Room","enum":["r1","r2"],"enumNames":["Kitchen","Hall"],"default":"r2"},"guests":{"type":"integer","minimum":1,"maximum":9,"default":2},"mail":{"type":"string","format":"email"},"quiet":{"type":"boolean","default":false}}' '["room","guests"]')"
    ;;
  *'"method":"tools/call"'*'"name":"confirm"'*)
    waiting=$id
    ask e1 "$(form 'Really?' '{}' '[]')"
    ;;
  *'"method":"tools/call"'*'"name":"address"'*)
    waiting=$id
    ask e1 '{"mode":"url","message":"m","url":"https://a.example","elicitationId":"1"}'
    ;;
  *'"method":"tools/call"'*'"name":"nested"'*)
    waiting=$id
    ask e1 "$(form 'm' '{"deep":{"type":"object"}}' '[]')"
    ;;
  *'"method":"tools/call"'*'"name":"two"'*)
    waiting=$id
    ask first "$(form 'First?' '{}' '[]')"
    ask e1 "$(form 'Second?' '{}' '[]')"
    ;;
  *'"method":"tools/call"'*'"name":"regret"'*)
    waiting=$id
    ask regretted "$(form 'Still?' '{}' '[]')"
    ;;
  *'"method":"tools/call"'*'"name":"hurry"'*)
    waiting=$id
    ask hurried "$(form 'Soon?' '{}' '[]')"
    ;;
  # It is never answered.
  *'"method":"tools/call"'*'"name":"slow"'*) ;;
  *'"method":"tools/call"'*'"name":"after"'*) text "$id" done ;;
  # It may be the call before that asks.
  *'"method":"tools/call"'*'"name":"idle"'*)
    waiting=$id
    ask e1 "$(form 'Private?' '{}' '[]')"
    ;;
  *'"id":"e1"'*)
    text "$waiting" "$(printf '%s' "$line" | tr -d '\\' | tr '"' "'")"
    ;;
  esac
  # The test says when the server goes on.
  case $line in
  *'"name":"regret"'*)
    while [ ! -e "$STUB_NOTES.go" ]; do sleep 0.02; done
    say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"regretted"}}'
    text "$waiting" "regretted"
    ;;
  *'"name":"hurry"'*)
    while [ ! -e "$STUB_NOTES.go" ]; do sleep 0.02; done
    text "$waiting" "without you"
    ;;
  esac
done
