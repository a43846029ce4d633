"""Records the vectors of `en.tsv` and its questions: vectors.py en BASE_URL MODEL > en.vectors

They are asked of a server with OpenAI's interface, as Hearth does: each message between the one
before it and the one after it, then each question; 384 numbers of one byte each.
"""

import itertools
import json
import pathlib
import sys
import urllib.request

here = pathlib.Path(__file__).parent


def lines(name):
    return [line.split("\t") for line in (here / name).read_text().splitlines()]


corpus, url, model = sys.argv[1:]
texts = []
for _, day in itertools.groupby(lines(corpus + ".tsv"), lambda line: line[0][:10]):
    day = list(day)
    for place, (_, speaker, text) in enumerate(day):
        beside = [f"{line[1]}: {line[2][:300]}" for line in day]
        whole = f"{speaker}: {text[:1000]}"
        passage = [*beside[place - 1 : place], whole, *beside[place + 1 : place + 2]]
        texts.append("\n".join(passage))
texts += [question[1] for question in lines(corpus + ".questions.tsv")]

for number in range(0, len(texts), 32):
    body = json.dumps({"model": model, "input": texts[number : number + 32]}).encode()
    request = urllib.request.Request(
        url + "/embeddings", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        for item in json.load(answer)["data"]:
            vector = item["embedding"][:384]
            most = max(map(abs, vector))
            small = [round(number / most * 127) & 0xFF for number in vector]
            sys.stdout.buffer.write(bytes(small))
