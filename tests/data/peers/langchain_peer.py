"""LangChain over each of the three interfaces."""
import importlib.metadata
import os
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

hearth, token = os.environ["HEARTH"], os.environ["TOKEN"]


class Cat(BaseModel):
    name: str
    age: int


@tool
def turn_on(name: str) -> str:
    "Turns on a light."
    return f"{name} is on"


openai = {"base_url": hearth + "/v1", "api_key": token, "model": "hearth"}
bearer = {"headers": {"Authorization": "Bearer " + token}}
for model in [
    ChatOpenAI(**openai),
    ChatOpenAI(use_responses_api=True, **openai),
    ChatOllama(base_url=hearth, model="hearth", client_kwargs=bearer),
]:
    assert model.invoke("hello").text == "You have said 1 things."
    pieces = [chunk.text for chunk in model.stream("hello")]
    assert "".join(pieces) == "You have said 1 things." and len(pieces) > 3, pieces
    said = [
        SystemMessage("Be brief."),
        HumanMessage("hello"),
        AIMessage("You have said 1 things."),
        HumanMessage("hello again"),
    ]
    assert model.invoke(said).text == "You have said 2 things."
    cat = model.with_structured_output(Cat).invoke("Which cat?")
    assert cat == Cat(name="Milo", age=3), cat
    agent = create_agent(model, [turn_on])
    messages = agent.invoke({"messages": [HumanMessage("light please")]})["messages"]
    kinds = [message.type for message in messages]
    assert kinds == ["human", "ai", "tool", "ai"], kinds
    assert messages[-1].text == "It is on.", messages
print("langchain", importlib.metadata.version("langchain"), "ok")
