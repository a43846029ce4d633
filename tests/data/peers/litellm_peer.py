"""LiteLLM in its forms: OpenAI's interface and both of Ollama's."""
import importlib.metadata
import os
import litellm

hearth, token = os.environ["HEARTH"], os.environ["TOKEN"]
hello = [{"role": "user", "content": "hello"}]
more = hello + [
    {"role": "assistant", "content": "You have said 1 things."},
    {"role": "user", "content": "hello again"},
]
light = {
    "type": "function",
    "function": {
        "name": "turn_on",
        "description": "Turns on a light.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
cat = {
    "type": "json_schema",
    "json_schema": {
        "name": "cat",
        "schema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


def ask(messages, **options):
    return litellm.completion(
        model=model, api_base=base, api_key=token, messages=messages, **options
    )


def text(answer):
    return answer.choices[0].message.content


for model, base in [
    ("openai/hearth", hearth + "/v1"),
    ("ollama_chat/hearth", hearth),
    ("ollama/hearth", hearth),
]:
    assert text(ask(hello)) == "You have said 1 things."
    pieces = [chunk.choices[0].delta.content or "" for chunk in ask(hello, stream=True)]
    assert "".join(pieces) == "You have said 1 things." and len(pieces) > 3, pieces
    assert '"Milo"' in text(ask([{"role": "user", "content": "Which cat?"}], response_format=cat))
    if model == "ollama/hearth":
        # It writes all that was said into one prompt, for /api/generate.
        continue
    assert text(ask(more)) == "You have said 2 things."
    messages = [{"role": "user", "content": "light please"}]
    message = ask(messages, tools=[light]).choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "turn_on", message
    messages += [
        message.model_dump(),
        {"role": "tool", "tool_call_id": call.id, "name": "turn_on", "content": "on"},
    ]
    assert text(ask(messages, tools=[light])) == "It is on."
print("litellm", importlib.metadata.version("litellm"), "ok")
