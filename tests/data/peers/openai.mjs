// OpenAI's own library for JavaScript.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const { default: OpenAI } = await import(pathToFileURL(require.resolve('openai')));

const client = new OpenAI({ baseURL: process.env.HEARTH + '/v1', apiKey: process.env.TOKEN });
const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.deepEqual(names, ['hearth', 'hearth-plain', 'scripted']);
const messages = [{ role: 'user', content: 'hello' }];
const answer = await client.chat.completions.create({ model: 'hearth', messages });
assert.equal(answer.choices[0].message.content, 'You have said 1 things.');
messages.push(answer.choices[0].message, { role: 'user', content: 'hello again' });
const stream = await client.chat.completions.create({ model: 'hearth', messages, stream: true });
let text = '';
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
assert.equal(text, 'You have said 2 things.');
const response = await client.responses.create({ model: 'hearth', input: 'hello' });
assert.equal(response.output_text, 'You have said 1 things.');
const tools = [{
  type: 'function',
  function: {
    name: 'turn_on',
    parameters: { type: 'object', properties: { name: { type: 'string' } } },
    function: async ({ name }) => name + ' is on',
    parse: JSON.parse,
  },
}];
const runner = client.chat.completions.runTools({
  model: 'hearth', messages: [{ role: 'user', content: 'light please' }], tools,
});
assert.equal(await runner.finalContent(), 'It is on.');
await assert.rejects(
  client.chat.completions.create({ model: 'gpt-5', messages }),
  (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found',
);
console.log('openai ok');
