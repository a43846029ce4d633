// Vercel's AI SDK: its default, which is the Responses API, and Chat Completions.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are where the program was started.
const require = createRequire(process.cwd() + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateObject, generateText, stepCountIs, streamText, tool } = await load('ai');
const { createOpenAI } = await load('@ai-sdk/openai');
const { z } = await load('zod');

const hearth = createOpenAI({
  baseURL: process.env.HEARTH + '/v1',
  apiKey: process.env.TOKEN,
});
for (const model of [hearth('hearth'), hearth.chat('hearth')]) {
  const whole = await generateText({ model, prompt: 'hello' });
  assert.equal(whole.text, 'You have said 1 things.');
  assert.equal(whole.finishReason, 'stop');
  assert.equal(whole.usage.totalTokens, 15);
  assert.deepEqual(whole.warnings, []);
  const streamed = streamText({
    model,
    system: 'Be brief.',
    messages: [
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: 'You have said 1 things.' },
      { role: 'user', content: 'hello again' },
    ],
  });
  const pieces = [];
  for await (const piece of streamed.textStream) pieces.push(piece);
  assert.equal(pieces.join(''), 'You have said 2 things.');
  assert.ok(pieces.length > 3);
  assert.equal((await streamed.usage).totalTokens, 15);
  const asked = [];
  const tools = {
    turn_on: tool({
      description: 'Turns on a light.',
      inputSchema: z.object({ name: z.string() }),
      execute: async ({ name }) => (asked.push(name), 'on'),
    }),
  };
  const prompt = 'light please';
  const ran = await generateText({ model, tools, prompt, stopWhen: stepCountIs(3) });
  assert.equal(ran.text, 'It is on.');
  const live = streamText({ model, tools, prompt, stopWhen: stepCountIs(3) });
  assert.equal(await live.text, 'It is on.');
  assert.deepEqual(asked, ['kitchen', 'kitchen']);
  const schema = z.object({ name: z.string(), age: z.number() });
  const { object } = await generateObject({ model, schema, prompt: 'Which cat?' });
  assert.deepEqual(object, { name: 'Milo', age: 3 });
}
console.log('ai ok');
