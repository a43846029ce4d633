// Anthropic's own library for JavaScript.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const { default: Anthropic } = await import(pathToFileURL(require.resolve('@anthropic-ai/sdk')));

const client = new Anthropic({ baseURL: process.env.HEARTH, apiKey: process.env.TOKEN });
const messages = [{ role: 'user', content: 'hello' }];
const asked = { model: 'hearth', max_tokens: 500, system: 'Be brief.' };
const message = await client.messages.create({ ...asked, messages });
assert.equal(message.content[0].text, 'You have said 1 things.');
messages.push({ role: 'assistant', content: message.content }, { role: 'user', content: 'again' });
const stream = client.messages.stream({ ...asked, messages });
let text = '';
stream.on('text', (piece) => { text += piece; });
const last = await stream.finalMessage();
assert.equal(text, 'You have said 2 things.');
assert.equal(last.content[0].text, text);

const tools = [{ name: 'turn_on', input_schema: { type: 'object', properties: {} } }];
const said = [{ role: 'user', content: 'light please' }];
const called = await client.messages.stream({ ...asked, messages: said, tools }).finalMessage();
assert.equal(called.stop_reason, 'tool_use');
const [call] = called.content.filter((block) => block.type === 'tool_use');
assert.deepEqual(call.input, { name: 'kitchen' });
said.push({ role: 'assistant', content: called.content });
said.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'on' }] });
const done = await client.messages.create({ ...asked, messages: said, tools });
assert.equal(done.content[0].text, 'It is on.');
const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
const seen = [{ role: 'user', content: [picture, { type: 'text', text: 'What is it?' }] }];
assert.equal((await client.messages.create({ ...asked, messages: seen })).content[0].text, 'A picture.');
const thinking = { type: 'enabled', budget_tokens: 1024 };
const thoughtful = { ...asked, max_tokens: 2000, thinking, messages: [{ role: 'user', content: 'think' }] };
for (const thought of [
  await client.messages.create(thoughtful),
  await client.messages.stream({ ...thoughtful, system: 'Be long.' }).finalMessage(),
]) {
  assert.deepEqual(thought.content.map((block) => block.type), ['thinking', 'text']);
  assert.equal(thought.content[0].thinking, 'It is wet.');
}
assert.ok((await client.messages.countTokens({ model: 'hearth', messages })).input_tokens > 4);
const unknown = client.messages.create({ ...asked, model: 'claude-5', messages });
await assert.rejects(unknown, Anthropic.NotFoundError);
console.log('@anthropic-ai/sdk ok');
