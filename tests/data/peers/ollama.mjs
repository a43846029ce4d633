// Ollama's own library for JavaScript.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const { Ollama } = await import(pathToFileURL(require.resolve('ollama')));

const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const client = new Ollama({ host: process.env.HEARTH, headers });
const { models } = await client.list();
assert.equal(models[0].model, 'hearth:latest');
assert.equal((await client.show({ model: 'hearth' })).model_info['general.architecture'], 'hearth');
const model = 'hearth';
const messages = [{ role: 'user', content: 'hello' }];
const whole = await client.chat({ model, messages, options: { num_ctx: 4096 }, keep_alive: '5m' });
assert.equal(whole.message.content, 'You have said 1 things.');
messages.push(whole.message, { role: 'user', content: 'hello again' });
let text = '';
for await (const part of await client.chat({ model, messages, stream: true })) {
  text += part.message.content;
}
assert.equal(text, 'You have said 2 things.');
const generated = await client.generate({ model, prompt: 'hello' });
assert.equal(generated.response, 'You have said 1 things.');

const parameters = { type: 'object', properties: { name: { type: 'string' } } };
const light = { name: 'turn_on', description: 'Turns on a light.', parameters };
const tools = [{ type: 'function', function: light }];
const asked = [{ role: 'user', content: 'all lights please' }];
const { message } = await client.chat({ model, messages: asked, tools });
const names = message.tool_calls.map((call) => call.function.arguments.name);
assert.deepEqual(names, ['kitchen', 'hall']);
asked.push(message);
for (const name of names) asked.push({ role: 'tool', tool_name: 'turn_on', content: `${name} is on` });
assert.equal((await client.chat({ model, messages: asked, tools })).message.content, 'It is on.');

const { embeddings } = await client.embed({ model: 'embed', input: ['milk', 'tea'] });
assert.deepEqual(embeddings, [[0.5, -0.25], [0.5, -0.25]]);
const { embedding } = await client.embeddings({ model: 'embed', prompt: 'milk' });
assert.deepEqual(embedding, [0.5, -0.25]);
await assert.rejects(client.chat({ model: 'llama', messages }), /not found|llama/);
console.log('ollama ok');
