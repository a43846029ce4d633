"""Anthropic's own library: messages whole and streamed, pictures, thoughts, tools, a count and errors."""
import os
import anthropic

client = anthropic.Anthropic(base_url=os.environ["HEARTH"], api_key=os.environ["TOKEN"])
assert [model.id for model in client.models.list()][:2] == ["hearth", "hearth-plain"]
asked = {"model": "hearth", "max_tokens": 500, "system": "Be brief."}
said = [{"role": "user", "content": "hello"}]
message = client.messages.create(messages=said, **asked)
assert message.content[0].text == "You have said 1 things.", message
assert message.stop_reason == "end_turn" and message.usage.output_tokens == 5, message

said += [{"role": "assistant", "content": message.content}, {"role": "user", "content": "again"}]
with client.messages.stream(messages=said, **asked) as stream:
    pieces = list(stream.text_stream)
    final = stream.get_final_message()
assert "".join(pieces) == "You have said 2 things." and len(pieces) > 3, pieces
assert final.content[0].text == "You have said 2 things." and final.usage.input_tokens == 10, final

tool = {"name": "turn_on", "description": "Turns on a light.",
        "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}}}
for stream in [False, True]:
    said = [{"role": "user", "content": f"light please, {stream}"}]
    for expected in ["tool_use", "end_turn"]:
        if stream:
            with client.messages.stream(messages=said, tools=[tool], **asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(messages=said, tools=[tool], **asked)
        assert message.stop_reason == expected, message
        said.append({"role": "assistant", "content": message.content})
        calls = [block for block in message.content if block.type == "tool_use"]
        assert all(call.input == {"name": "kitchen"} for call in calls), message
        said.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": "on"} for call in calls]})
    assert message.content[-1].text == "It is on.", message

pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}
seen = [{"role": "user", "content": [picture, {"type": "text", "text": "What is it?"}]}]
message = client.messages.create(messages=seen, **asked)
assert message.content[0].text == "A picture.", message
thoughtful = {**asked, "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
for text in ["think", "think again"]:
    said_so = [{"role": "user", "content": text}]
    if text == "think":
        message = client.messages.create(messages=said_so, **thoughtful)
    else:
        with client.messages.stream(messages=said_so, **thoughtful) as events:
            message = events.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"], message
    assert message.content[0].thinking == "It is wet.", message

assert client.messages.count_tokens(model="hearth", messages=said[:1]).input_tokens > 4
for key, model, error in [("wrong", "hearth", anthropic.AuthenticationError),
                          (os.environ["TOKEN"], "claude-5", anthropic.NotFoundError)]:
    try:
        other = anthropic.Anthropic(base_url=os.environ["HEARTH"], api_key=key)
        other.messages.create(model=model, max_tokens=5, messages=said[:1])
        raise SystemExit("no error")
    except error:
        pass
print("anthropic", anthropic.__version__, "ok")
