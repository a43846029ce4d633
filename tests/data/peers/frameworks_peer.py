"""LlamaIndex, Strands and LangChain's embeddings, over the interfaces of Ollama and OpenAI."""
import asyncio
import importlib.metadata
import os

from langchain_ollama import OllamaEmbeddings
from langchain_openai import OpenAIEmbeddings
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.llms.ollama import Ollama
from ollama import AsyncClient, Client
from strands import Agent, tool
from strands.models.ollama import OllamaModel
from strands.models.openai import OpenAIModel

hearth, token = os.environ["HEARTH"], os.environ["TOKEN"]
bearer = {"Authorization": "Bearer " + token}


def turn_on(name: str) -> str:
    "Turns on a light."
    return f"{name} is on"


index = Ollama(
    model="hearth", base_url=hearth, context_window=8000,
    client=Client(host=hearth, headers=bearer),
    async_client=AsyncClient(host=hearth, headers=bearer),
)
said = [ChatMessage(role="user", content="hello")]
assert index.chat(said).message.content == "You have said 1 things."
pieces = [piece.delta for piece in index.stream_chat(said)]
assert "".join(pieces) == "You have said 1 things." and len(pieces) > 3, pieces
assert index.complete("hello").text == "You have said 1 things."


async def act():
    return str(await FunctionAgent(tools=[turn_on], llm=index).run("all lights please"))


assert asyncio.run(act()) == "It is on."
vector = [0.5, -0.25]
embedding = OllamaEmbedding("embed", base_url=hearth, client_kwargs={"headers": bearer})
assert embedding.get_text_embedding("milk") == vector
assert embedding.get_text_embedding_batch(["milk", "tea"]) == [vector, vector]

for embedding in [
    OllamaEmbeddings(model="embed", base_url=hearth, client_kwargs={"headers": bearer}),
    OpenAIEmbeddings(
        model="embed", base_url=hearth + "/v1", api_key=token, check_embedding_ctx_length=False
    ),
]:
    assert embedding.embed_documents(["milk", "tea"]) == [vector, vector]
    assert embedding.embed_query("milk") == vector

for model in [
    OpenAIModel(client_args={"base_url": hearth + "/v1", "api_key": token}, model_id="hearth"),
    OllamaModel(hearth, model_id="hearth", ollama_client_args={"headers": bearer}),
]:
    agent = Agent(model=model, tools=[tool(turn_on)], callback_handler=None)
    assert str(agent("hello")).strip() == "You have said 1 things."
    assert str(agent("all lights please")).strip() == "It is on."
    assert str(agent("thank you")).strip() == "You have said 3 things."
for name in ["llama-index-core", "strands-agents", "langchain-ollama", "ollama"]:
    print(name, importlib.metadata.version(name), "ok")
