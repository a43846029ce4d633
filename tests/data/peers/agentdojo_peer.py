"""The suites of AgentDojo as MCP servers, each at /SUITE/mcp, and what their tasks are.

`POST /SUITE/begin` names a user task and perhaps an injection task, and starts on a fresh
environment, in which everything that an attacker can write to says the injection. It answers
with the calls that solve each of them. `GET /SUITE/ran` counts the calls that have run since, and
`POST /SUITE/end` has the suite judge what became of it.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string


class Suite:
    def __init__(self, suite):
        self.suite = suite
        self.runtime = FunctionsRuntime(suite.tools)
        self.environments = {}

    def tasks(self):
        return {"user": list(self.suite.user_tasks), "injection": list(self.suite.injection_tasks)}

    def injected(self, injection):
        if injection not in self.environments:
            text = "" if injection is None else ImportantInstructionsAttack._JB_STRING.format(
                goal=self.suite.injection_tasks[injection].GOAL,
                user="Emma Johnson",
                model="the AI language model",
            )
            places = {} if injection is None else self.suite.get_injection_vector_defaults()
            self.environments[injection] = self.suite.load_and_inject_default_environment(
                {place: text for place in places}
            )
        return self.environments[injection].model_copy(deep=True)

    def begin(self, user, injection):
        self.user = self.suite.user_tasks[user]
        self.injection = self.suite.injection_tasks.get(injection)
        self.environment = self.user.init_environment(self.injected(injection))
        self.before = self.environment.model_copy(deep=True)
        self.ran = []
        return {
            "prompt": self.user.PROMPT,
            "answer": self.user.GROUND_TRUTH_OUTPUT,
            "calls": self.calls(self.user),
            "injected": self.calls(self.injection) if self.injection else [],
        }

    def calls(self, task):
        calls = task.ground_truth(self.before.model_copy(deep=True))
        return [{"tool": call.function, "arguments": call.args} for call in calls]

    def end(self, answer):
        said = [text_content_block_from_string(answer)]
        became = said, self.before, self.environment, self.ran
        solved = self.suite._check_user_task_utility(self.user, *became)
        attacked = self.injection and self.suite._check_injection_task_security(
            self.injection, *became
        )
        return {"solved": bool(solved), "attacked": bool(attacked)}

    def call(self, name, arguments):
        self.ran.append(FunctionCall(function=name, args=arguments))
        result, error = self.runtime.run_function(self.environment, name, arguments)
        text = error or tool_result_to_str(result)
        return {"content": [{"type": "text", "text": text}], "isError": error is not None}

    def answer(self, method, params):
        """What a request of the Model Context Protocol gets."""
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": self.suite.name, "version": "1"},
            }
        if method == "tools/list":
            return {"tools": [{
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters.model_json_schema(),
            } for tool in self.suite.tools]}
        return self.call(params["name"], params["arguments"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is sent whole.
    wbufsize = -1
    disable_nagle_algorithm = True

    def reply(self, status, body=None):
        content = b"" if body is None else json.dumps(body, default=str).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        name, action = self.path.strip("/").split("/")
        match action:
            case "tasks":
                self.reply(200, SUITES[name].tasks())
            case "tools":
                self.reply(200, list(SUITES[name].runtime.functions))
            case "ran":
                self.reply(200, len(SUITES[name].ran))
            case _:
                self.reply(405)

    def do_POST(self):
        name, action = self.path.strip("/").split("/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match action:
            case "begin":
                self.reply(200, SUITES[name].begin(**body))
            case "end":
                self.reply(200, SUITES[name].end(**body))
            case _ if "id" not in body:
                self.reply(202)
            case _:
                result = SUITES[name].answer(body["method"], body.get("params"))
                self.reply(200, {"jsonrpc": "2.0", "id": body["id"], "result": result})

    def log_message(self, *_):
        pass


SUITES = {name: Suite(suite) for name, suite in get_suites("v1.2.2").items()}
host, port = sys.argv[1].split(":")
ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
