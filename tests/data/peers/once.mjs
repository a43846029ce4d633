// Libraries that repeat a request by themselves, before a model that fails at each step.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateText, streamText } = await load('ai');
const { createOpenAI } = await load('@ai-sdk/openai');
const { default: OpenAI } = await load('openai');

const baseURL = process.env.HEARTH + '/v1';
const apiKey = process.env.TOKEN;
const vercel = createOpenAI({ baseURL, apiKey });
const openai = new OpenAI({ baseURL, apiKey });
const ofModel = (model) => async (prompt, stream) => {
  if (!stream) return generateText({ model, prompt });
  let failure;
  const answer = streamText({ model, prompt, onError: ({ error }) => (failure = error) });
  await answer.consumeStream();
  if (failure) throw failure;
};
const ofOpenAi = async (content, stream) => {
  const messages = [{ role: 'user', content }];
  const answer = await openai.chat.completions.create({ model: 'hearth', messages, stream });
  if (stream) for await (const _ of answer);
};
const asks = {
  vercel_chat: ofModel(vercel.chat('hearth')),
  vercel: ofModel(vercel('hearth')),
  openai: ofOpenAi,
};
for (const [name, ask] of Object.entries(asks)) {
  for (const status of process.env.STATUSES.split(' ')) {
    for (const step of [0, 1]) {
      for (const stream of [false, true]) {
        const text = `${name} ${stream ? 'streamed' : 'whole'} ${step} ${status}`;
        await assert.rejects(ask(text, stream), text);
      }
    }
  }
}
console.log('ok');
