"""What Home Assistant's integration `mcp` does where it speaks Streamable HTTP, by its libraries:
it sends a token only where the URL has one."""
import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from voluptuous_openapi import convert_to_voluptuous


async def main(url: str) -> None:
    async with streamablehttp_client(url=url) as (read, write, _):
        async with ClientSession(read, write) as session:
            found = await session.initialize()
            assert found.capabilities.tools, found
            for tool in (await session.list_tools()).tools:
                convert_to_voluptuous(tool.inputSchema)
            milk = {"action": "add", "list": "shopping", "items": ["milk"]}
            result = await session.call_tool("lists", milk)
            assert not result.isError, result


asyncio.run(main(sys.argv[1]))
