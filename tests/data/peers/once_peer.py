"""Libraries that repeat a request by themselves, before a model that fails at each step."""
import os

import litellm
import openai
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

base, token = os.environ["HEARTH"] + "/v1", os.environ["TOKEN"]
client = openai.OpenAI(base_url=base, api_key=token)
index = OpenAILike(model="hearth", api_base=base, api_key=token, is_chat_model=True)


def of_openai(text, stream):
    messages = [{"role": "user", "content": text}]
    answer = client.chat.completions.create(model="hearth", messages=messages, stream=stream)
    if stream:
        list(answer)


def of_litellm(text, stream):
    messages = [{"role": "user", "content": text}]
    answer = litellm.completion(
        model="openai/hearth", api_base=base, api_key=token, messages=messages, stream=stream,
        num_retries=2,
    )
    if stream:
        list(answer)


def of_llama_index(text, stream):
    messages = [ChatMessage(role="user", content=text)]
    if stream:
        list(index.stream_chat(messages))
    else:
        index.chat(messages)


for name, ask in [
    ("openai", of_openai), ("litellm", of_litellm), ("llama_index", of_llama_index),
]:
    for status in os.environ["STATUSES"].split():
        for step in ["0", "1"]:
            for stream in [False, True]:
                text = f"{name} {'streamed' if stream else 'whole'} {step} {status}"
                try:
                    ask(text, stream)
                except Exception as error:
                    print(text, type(error).__name__)
                else:
                    raise SystemExit(f"{text}: no error")
print("ok")
