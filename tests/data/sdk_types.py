"""Checks requests against the types of the services' own libraries: every member must be
one that they know, of the right type. Usage: sdk_types.py LIBRARY FILE...
Each line of a file is one request."""

import importlib
import importlib.metadata
import json
import pkgutil
import re
import sys
from collections.abc import Iterator

import pydantic
import typing_extensions


CONFIG = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def forbid_others(package):
    """Makes every TypedDict of a package refuse members that it does not have."""
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        found = vars(importlib.import_module(module.name)).values()
        for kind in list(found):
            if typing_extensions.is_typeddict(kind):
                kind.__pydantic_config__ = CONFIG


def read_all(value):
    """Iterables are checked only as they are read."""
    if isinstance(value, dict):
        for member in value.values():
            read_all(member)
    elif isinstance(value, (list, tuple, Iterator)) or type(value).__name__ == "ValidatorIterator":
        for item in value:
            read_all(item)


def by_typed_dict(kind):
    adapter = pydantic.TypeAdapter(kind)

    def check(request):
        read_all(adapter.validate_python(request))

    return check


def lost(sent, kept, place=""):
    """The places of what a model did not take."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for name, value in sent.items():
            if name not in kept:
                yield f"{place}.{name}"
            else:
                yield from lost(value, kept[name], f"{place}.{name}")
    elif isinstance(sent, list) and isinstance(kept, list):
        for index, (one, other) in enumerate(zip(sent, kept)):
            yield from lost(one, other, f"{place}[{index}]")


def by_model(kind, also=()):
    """`also` are places that the library leaves out, and the service knows."""

    def check(request):
        read = kind.model_validate(request)
        kept = json.loads(read.model_dump_json(by_alias=True, exclude_unset=True))
        places = {re.sub(r"[0-9]+", "", place): place for place in lost(request, kept)}
        missing = [place for name, place in places.items() if name not in also]
        assert not missing, f"unknown to the library: {', '.join(missing)}"

    return check


def openai_chat():
    import openai.types
    from openai.types.chat import completion_create_params as params

    forbid_others(openai.types)
    kinds = {
        True: by_typed_dict(params.CompletionCreateParamsStreaming),
        False: by_typed_dict(params.CompletionCreateParamsNonStreaming),
    }
    return lambda request: kinds[request.get("stream", False)](request)


def openai_responses():
    import openai.types
    from openai.types.responses import response_create_params as params

    forbid_others(openai.types)
    kinds = {
        True: by_typed_dict(params.ResponseCreateParamsStreaming),
        False: by_typed_dict(params.ResponseCreateParamsNonStreaming),
    }
    return lambda request: kinds[request.get("stream", False)](request)


def anthropic():
    import anthropic.types
    from anthropic.types import message_create_params as params

    forbid_others(anthropic.types)
    kinds = {
        True: by_typed_dict(params.MessageCreateParamsStreaming),
        False: by_typed_dict(params.MessageCreateParamsNonStreaming),
    }
    return lambda request: kinds[request.get("stream", False)](request)


def ollama():
    from ollama import _types as types

    # Ollama itself has had both since 0.12 (ToolCall.ID and Message.ToolCallID of api/types.go).
    also = (".tool_calls[].id", ".tool_call_id")
    whole, message = by_model(types.ChatRequest), by_model(types.Message, also)
    tool, options = by_model(types.Tool), by_model(types.Options)

    def check(request):
        whole(request)
        # Within the whole, any mapping is taken.
        for one in request["messages"]:
            # The library turns an Image into the text that is sent.
            images = [{"value": image} for image in one.get("images", [])]
            message({**one, "images": images} if images else one)
        for one in request.get("tools", []):
            tool(one)
        options(request.get("options", {}))

    return check


def mistral():
    from mistralai.client import models

    kinds = {
        True: by_model(models.ChatCompletionStreamRequest),
        False: by_model(models.ChatCompletionRequest),
    }
    return lambda request: kinds[request.get("stream", False)](request)


def with_unknown(request):
    """The request with a member in its first message that nobody knows."""
    member = "input" if "input" in request else "messages"
    first, *rest = request[member]
    return {**request, member: [{**first, "unknown": 1}, *rest]}


LIBRARIES = {
    "openai_chat": ("openai", openai_chat),
    "openai_responses": ("openai", openai_responses),
    "anthropic": ("anthropic", anthropic),
    "ollama": ("ollama", ollama),
    "mistral": ("mistralai", mistral),
}

library, make = LIBRARIES[sys.argv[1]]
check = make()
count = 0
for name in sys.argv[2:]:
    for line in open(name, encoding="utf-8"):
        request = json.loads(line)
        try:
            check(request)
        except Exception as error:
            raise SystemExit(f"{library}: {error}\n{json.dumps(request, indent=1)[:8000]}")
        # A check that takes anything proves nothing.
        for bad in [{**request, "unknown": 1}, with_unknown(request)]:
            try:
                check(bad)
            except Exception:
                continue
            raise SystemExit(f"{library} takes anything in {name}")
        count += 1
print(library, importlib.metadata.version(library), count, "requests of", sys.argv[1], "ok")
