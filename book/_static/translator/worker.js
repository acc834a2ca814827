// Runs the translator beside the page, which stays responsive. Each message {id, do, ...} is answered by {id, done},
// before that by {id, progress} or {id, step}, or by {id, error} or {id, cancelled: true}.

import * as engine from "./engine.js";

let loading = null; // a promise of {model, tokens}
let running = null; // the translation in progress: {cancelled}

/** Give the browser a moment, so that messages that have arrived are handled. */
const pause = () => new Promise(resolve => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); resolve(); };
  port2.postMessage(null);
});

async function fetched(address, options) {
  const answer = await fetch(address, options).catch(() => null);
  if (answer?.ok) return answer;
  const why = answer ? `the server answered ${answer.status}` : "there is no connection";
  throw new Error(`The translator could not be loaded, because ${why}. Try again later.`);
}

/** The content of the weights' file, from what the browser kept or from the network. */
async function weights(address, { sha256, bytes }, onProgress) {
  const kept = await globalThis.caches?.open("translator").catch(() => null); // only https:// and localhost have it
  const key = `${address}?${sha256}`;
  const known = await kept?.match(key);
  if (known) return known.arrayBuffer();
  const answer = await fetched(key);
  const content = new Uint8Array(bytes);
  let length = 0;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (length + value.length <= bytes) content.set(value, length);
    length += value.length;
    onProgress(Math.min(length / bytes, 1));
  }
  if (length !== bytes) throw new Error("The translator's file is incomplete or of another version. Reload the page.");
  for (const old of await kept?.keys() ?? []) await kept.delete(old);
  await kept?.put(key, new Response(content)).catch(() => null); // no space is no error
  return content.buffer;
}

async function load({ base }, post) {
  if (!globalThis.DecompressionStream) throw new Error("This browser is too old to run the translator. Update it.");
  const folder = base.endsWith("/") ? base : `${base}/`;
  const answer = await fetched(`${folder}model.json`, { cache: "no-cache" }); // it names the weights that it needs
  const about = await answer.json();
  const content = await weights(`${folder}weights.bin`, about, progress => post({ progress }));
  return { model: await engine.loadModel(about, content), tokens: engine.tokenizer(about), about };
}

async function translate({ model, tokens }, { text, search, prefix = [], ...options }, post, run) {
  const source = described(tokens, tokens.source(text));
  if (!source.ids.length) {
    return { source, target: described(tokens, { ids: [] }), text: "", logProb: 0, score: 0, finished: true, steps: [],
      cross: null, encoder: null, decoder: null };
  }
  const isWord = (id, i) => (id === 2 ? i === prefix.length - 1 : id > 2 && id < tokens.size); // 2 is <eos>
  if (!prefix.every(isWord)) throw new Error("The first words are not in the vocabulary.");
  const write = { greedy: engine.greedy, beam: engine.beam, sample: engine.sample }[search];
  const writing = write(model, source.ids, { ...options, prefix });
  let turn;
  while (true) {
    await pause();
    if (run.cancelled) return null;
    turn = writing.next();
    if (turn.done) break;
    post({ step: { tokens: tokens.tokens(turn.value), text: tokens.decode(turn.value) } });
  }
  const { tokens: ids, logProb, score, finished, hypotheses } = turn.value;
  const { logits, cross, encoder, decoder } = engine.inspect(model, source.ids, ids);
  const beams = hypotheses?.map(one => ({ text: tokens.decode(one.tokens), score: one.score, logProb: one.logProb }));
  return {
    source, target: described(tokens, { ids }), text: tokens.decode(ids), logProb, score, finished,
    steps: engine.steps(logits, ids, tokens.tokens), cross, encoder, decoder, ...(beams && { beams }),
  };
}

const described = (tokens, { ids, ...rest }) => ({ ids, tokens: tokens.tokens(ids), ...rest });

const actions = {
  async load(message, post) {
    loading ??= load(message, post);
    try {
      const { model: { config }, tokens, about } = await loading;
      return { vocabularySize: tokens.size, layers: config.num_layers, heads: config.num_heads,
        dModel: config.d_model, maxSourceTokens: about.max_source_tokens };
    } catch (error) {
      loading = null; // so that it can be tried again
      throw error;
    }
  },

  async tokenize({ text }) {
    const { tokens } = await loading;
    return described(tokens, tokens.source(text));
  },

  async translate(message, post) {
    if (running) running.cancelled = true;
    const run = running = { cancelled: false };
    try {
      return await translate(await loading, message, post, run);
    } finally {
      if (running === run) running = null;
    }
  },

  async head({ source, target, ...which }) {
    const one = engine.inspectHead((await loading).model, source, target, which);
    if (!one) throw new Error("There is no such layer, head or query.");
    const { query, keys, values, scores, weights, output } = one;
    const plain = rows => rows.map(row => Array.from(row)); // a view would be sent with all of its buffer
    const [[q, o], k, v] = [[query, output], keys, values].map(plain);
    return { query: q, keys: k, values: v, scores, weights, output: o };
  },

  cancel() {
    if (running) running.cancelled = true;
  },
};

onmessage = async ({ data: { id, do: action, ...message } }) => {
  const post = answer => postMessage({ id, ...answer });
  try {
    if (action !== "load" && action !== "cancel" && !loading) throw new Error("The translator has not been loaded yet.");
    const done = await actions[action](message, post);
    if (done) post({ done });
    else if (action === "translate") post({ cancelled: true });
  } catch (error) {
    post({ error: error.message });
  }
};
