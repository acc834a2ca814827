// The course's translator in plain JavaScript: tokens, forward pass and decoding. The parts have the names of the
// Python code: course_lib/*.py and course_kit/nn explain the same equations.
//
// A sequence of vectors, (L, d_model) in Python, is an array of L Float32Arrays here. There is no batch axis: a caption
// is encoded alone, and the rows of a decoding step are the open hypotheses of a beam.

const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const range = n => Array.from({ length: n }, (_, i) => i);
const sum = numbers => numbers.reduce((total, number) => total + number, 0);

// ---------------------------------------------------------------------------------------------------- the tokeniser

// What str.strip removes in Python; JavaScript's trim removes other characters.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const AROUND = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "g");

/** Byte-pair encoding with the vocabulary of the model, as `Vocabulary` in Python. */
export function tokenizer({ special, characters, merges, max_source_tokens }) {
  const vocabulary = [...special, ...characters];
  const idOf = new Map([...characters].map((character, i) => [character, special.length + i]));
  const merged = new Map(); // a pair of ids -> the id of both together; a smaller id was learned earlier
  const pair = (a, b) => a * 65536 + b;
  for (let i = 0; i < merges.length; i += 2) {
    merged.set(pair(merges[i], merges[i + 1]), vocabulary.length);
    vocabulary.push(vocabulary[merges[i]] + vocabulary[merges[i + 1]]);
  }

  function word(text) {
    let ids = [...text].map(character => idOf.get(character) ?? UNK);
    while (true) {
      const first = Math.min(...ids.slice(1).map((id, i) => merged.get(pair(ids[i], id)) ?? Infinity));
      if (first === Infinity) return ids;
      const next = [];
      for (let i = 0; i < ids.length; i++) {
        const fits = i + 1 < ids.length && merged.get(pair(ids[i], ids[i + 1])) === first;
        next.push(fits ? first : ids[i]);
        if (fits) i++;
      }
      ids = next;
    }
  }

  /** Ids of a text. Words begin with "▁", and a punctuation mark is a word; "▁" alone stays before a mark. */
  function encode(text) {
    text = text.normalize("NFC").replaceAll(" ", "▁");
    if (text && !text.startsWith("▁")) text = "▁" + text;
    return (text.match(/\p{P}|[$=`]|▁?[^▁\p{P}$=`]+|▁/gu) ?? []).flatMap(word);
  }

  return {
    size: vocabulary.length,
    encode,
    /** The text of ids; special tokens are left out, but for the unknown one. */
    decode(ids) {
      const tokens = ids.filter(id => id >= UNK).map(id => vocabulary[id]);
      return tokens.map((token, i) => token.replaceAll("▁", i ? " " : "")).join("");
    },
    tokens: ids => ids.map(id => vocabulary[id]),
    /** What the encoder reads: ids with <eos>, and whether the text was too long and was cut; none if it is empty. */
    source(text) {
      const ids = encode(text.replace(AROUND, ""));
      const cut = ids.length >= max_source_tokens;
      return { ids: ids.length ? [...ids.slice(0, max_source_tokens - 1), EOS] : [], cut };
    },
  };
}

// ------------------------------------------------------------------------------------------------------ the weights

/** The model from `model.json` and `weights.bin`: parts nested as their names in Python are, such as
 * `model.encoder.layers[0].self_attention.q_proj.weight`. `tools/export_translator.py` explains the file. */
export async function loadModel({ config, tensors }, file) {
  const unpacked = new Blob([file]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(unpacked).arrayBuffer();
  const sizes = tensors.map(({ shape }) => shape.reduce((a, b) => a * b));
  const all = sum(sizes);
  const high = new Int8Array(bytes, 0, all), middle = new Int8Array(bytes, all, all);
  const low = new Uint8Array(bytes, 2 * all); // four bits of two numbers in each byte
  const model = { config };
  let at = 0;
  tensors.forEach(({ name, step }, n) => {
    const weight = new Float32Array(sizes[n]);
    for (let i = 0; i < weight.length; i++, at++) {
      weight[i] = step * (4096 * high[at] + 16 * middle[at] + ((low[at >> 1] >> (4 * (at & 1))) & 15));
    }
    const path = name.split(".");
    const last = path.pop();
    path.reduce((part, key, i) => part[key] ??= path[i] === "layers" ? [] : {}, model)[last] = weight;
  });
  model.embedding = model.source_embedding.embedding.weight; // (V, d_model), the target's and the output's too
  return model;
}

// ------------------------------------------------------------------------------------------------------- the layers

/** x Wᵀ + b for rows x, (L, d_in) -> (L, d_out). Nearly all of the time is spent here. */
function linear({ weight, bias }, x) {
  const d_in = x[0].length, d_out = weight.length / d_in;
  const y = x.map(() => new Float32Array(d_out)); // (L, d_out)
  // Four outputs of two rows at a time: eight products for each six numbers that are read, and the processor adds up
  // the eight sums side by side. A last row without a partner is its own.
  for (let o = 0; o < d_out; o += 4) {
    const w0 = o * d_in, w1 = w0 + d_in, w2 = w1 + d_in, w3 = w2 + d_in;
    const b = bias ? bias.subarray(o, o + 4) : [0, 0, 0, 0];
    for (let row = 0; row < x.length; row += 2) {
      const next = Math.min(row + 1, x.length - 1);
      const xp = x[row], xq = x[next], yp = y[row], yq = y[next];
      let p0 = 0, p1 = 0, p2 = 0, p3 = 0, q0 = 0, q1 = 0, q2 = 0, q3 = 0;
      for (let i = 0; i < d_in; i++) {
        const p = xp[i], q = xq[i];
        const v0 = weight[w0 + i], v1 = weight[w1 + i], v2 = weight[w2 + i], v3 = weight[w3 + i];
        p0 += p * v0; p1 += p * v1; p2 += p * v2; p3 += p * v3;
        q0 += q * v0; q1 += q * v1; q2 += q * v2; q3 += q * v3;
      }
      yp[o] = p0 + b[0]; yp[o + 1] = p1 + b[1]; yp[o + 2] = p2 + b[2]; yp[o + 3] = p3 + b[3];
      yq[o] = q0 + b[0]; yq[o + 1] = q1 + b[1]; yq[o + 2] = q2 + b[2]; yq[o + 3] = q3 + b[3];
    }
  }
  return y;
}

const add = (x, y) => x.map((row, i) => row.map((value, c) => value + y[i][c]));

/** Each vector with mean 0 and variance 1, then scaled and shifted by learned vectors. */
function layerNorm({ weight, bias }, x) {
  return x.map(row => {
    const mean = sum(row) / row.length;
    const variance = sum(row.map(value => (value - mean) ** 2)) / row.length;
    return row.map((value, c) => (value - mean) / Math.sqrt(variance + 1e-5) * weight[c] + bias[c]);
  });
}

function feedForward({ linear1, linear2 }, x) {
  const hidden = linear(linear1, x).map(row => row.map(value => Math.max(value, 0))); // (L, d_ff)
  return linear(linear2, hidden); // (L, d_model)
}

export function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b));
  const exponentials = scores.map(score => Math.exp(score - largest));
  const total = sum(exponentials);
  return exponentials.map(value => value / total);
}

function dot(a, b) {
  let total = 0;
  for (let c = 0; c < a.length; c++) total += a[c] * b[c];
  return total;
}

/** One query (d_k,) of one head, the keys and values (L_k, d_k) that it may attend to; adds to `output` (d_k,). */
function scaledDotProductAttention(query, keys, values, output) {
  const scores = keys.map(key => dot(query, key) / Math.sqrt(query.length)); // (L_k,)
  const weights = softmax(scores); // (L_k,)
  values.forEach((value, j) => {
    for (let c = 0; c < output.length; c++) output[c] += weights[j] * value[c];
  });
  return { query, keys, values, scores, weights, output };
}

/** Each head's slice of the features, as views: (L, d_model) -> (H, L, d_k). */
function splitHeads(x, num_heads) {
  const d_k = x[0].length / num_heads;
  return range(num_heads).map(h => x.map(row => row.subarray(h * d_k, (h + 1) * d_k)));
}

/** Rotary positions: turns features 2i and 2i + 1 of each vector by the angle position / 10000^(2i / d_k), in place. */
function rotate(heads, positions) {
  for (const [n, position] of positions.entries()) {
    for (let i = 0; i < heads[0][n].length; i += 2) {
      const angle = position * 10000 ** (-i / heads[0][n].length);
      const cos = Math.cos(angle), sin = Math.sin(angle);
      for (const { [n]: vector } of heads) {
        const even = vector[i], odd = vector[i + 1];
        vector[i] = even * cos - odd * sin;
        vector[i + 1] = even * sin + odd * cos;
      }
    }
  }
  return heads;
}

/** Keys and values of x, (H, L, d_k) each, after those that were kept earlier. */
function keysAndValues({ k_proj, v_proj }, x, num_heads, positions = [], kept = { keys: [], values: [] }) {
  const append = (heads, more) => more.forEach((head, h) => (heads[h] ??= []).push(...head));
  append(kept.keys, rotate(splitHeads(linear(k_proj, x), num_heads), positions));
  append(kept.values, splitHeads(linear(v_proj, x), num_heads));
  return kept;
}

/** The mask is `mayAttend`: for each query the places of the keys that it may attend to. Without positions, as in
 * cross-attention, nothing is turned. `look`, if given, is called with what each head computed for each query. */
function multiHeadAttention({ q_proj, out_proj }, x, { keys, values }, positions, mayAttend, look) {
  const num_heads = keys.length;
  const queries = rotate(splitHeads(linear(q_proj, x), num_heads), positions); // (H, L_q, d_k)
  const outputs = x.map(row => new Float32Array(row.length)); // (L_q, d_model)
  splitHeads(outputs, num_heads).forEach((output, h) => {
    mayAttend.forEach((places, i) => {
      const at = head => places.map(place => head[place]);
      const one = scaledDotProductAttention(queries[h][i], at(keys[h]), at(values[h]), output[i]);
      look?.({ head: h, position: i, places, ...one });
    });
  });
  return linear(out_proj, outputs); // (L_q, d_model)
}

/** Pre-norm: x + f(norm(x)), first with self-attention, then with the feed-forward network. */
function encoderLayer(layer, x, positions, mayAttend, num_heads, look) {
  const y = layerNorm(layer.norm1, x);
  const kept = keysAndValues(layer.self_attention, y, num_heads, positions);
  x = add(x, multiHeadAttention(layer.self_attention, y, kept, positions, mayAttend, look));
  return add(x, feedForward(layer.feed_forward, layerNorm(layer.norm2, x)));
}

/** Self-attention over `own` keys and values, to which those of x are added; cross-attention over the memory's. */
function decoderLayer(layer, x, { own, cross }, positions, mayAttend, lookOwn, lookCross) {
  const y = layerNorm(layer.norm1, x);
  keysAndValues(layer.self_attention, y, cross.keys.length, positions, own);
  x = add(x, multiHeadAttention(layer.self_attention, y, own, positions, mayAttend, lookOwn));
  const everywhere = x.map(() => range(cross.keys[0].length));
  x = add(x, multiHeadAttention(layer.cross_attention, layerNorm(layer.norm2, x), cross, [], everywhere, lookCross));
  return add(x, feedForward(layer.feed_forward, layerNorm(layer.norm3, x)));
}

// -------------------------------------------------------------------------------------------------------- the model

function embed({ embedding, config: { d_model } }, ids) {
  return ids.map(id => embedding.subarray(id * d_model, (id + 1) * d_model).map(value => Math.sqrt(d_model) * value));
}

/** The memory (L_source, d_model). `look(kind, layer)` gives the function that each attention calls, or nothing. */
function encoder(model, ids, look = () => undefined) {
  const positions = range(ids.length), everywhere = ids.map(() => positions);
  let x = embed(model, ids); // (L_source, d_model)
  model.encoder.layers.forEach((layer, n) => {
    x = encoderLayer(layer, x, positions, everywhere, model.config.num_heads, look("encoder", n));
  });
  return layerNorm(model.encoder.norm, x);
}

/** Logits (L, V) of the next token after each of the ids. */
function decoder(state, ids, positions, mayAttend, look = () => undefined) {
  const { model } = state;
  let x = embed(model, ids); // (L, d_model)
  model.decoder.layers.forEach((layer, n) => {
    x = decoderLayer(layer, x, state.layers[n], positions, mayAttend, look("decoder", n), look("cross", n));
  });
  return linear({ weight: model.embedding }, layerNorm(model.decoder.norm, x)); // (L, V)
}

/** Memory and attention weights of a source. */
export function encode(model, ids) {
  const { maps, look } = recorder(model, ids.length, 0);
  return { memory: encoder(model, ids, look), selfAttention: maps.encoder };
}

/** A decoder that has read nothing yet. Its cache keeps keys and values of all tokens of all hypotheses. */
export function start(model, memory) {
  const layers = model.decoder.layers.map(layer => ({
    own: { keys: [], values: [] },
    cross: keysAndValues(layer.cross_attention, memory, model.config.num_heads),
  }));
  return { model, layers, histories: [[]], steps: 0, kept: 0 };
}

/** Logits (rows, V) after one more token in each row; row r continues row `parents[r]` of the step before. */
export function step(state, tokenIds, parents = tokenIds.map((_, r) => r)) {
  // Hypotheses share their beginnings: a history lists the places in the cache that a row may attend to.
  state.histories = parents.map((parent, r) => [...state.histories[parent], state.kept + r]);
  state.kept += tokenIds.length;
  const position = state.steps++;
  return decoder(state, tokenIds, tokenIds.map(() => position), state.histories);
}

// -------------------------------------------------------------------------------------------------------- decoding
// Generators: after each step they yield the tokens so far, and they return {tokens, logProb, score, finished}, where
// tokens end with <eos> if finished. To cancel one is to ask for no further step. `prefix` holds the first tokens.

/** How many tokens a translation may have, <eos> included. */
export const limit = sourceLength => 2 * sourceLength + 10;

function logSoftmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const normaliser = largest + Math.log(logits.reduce((total, logit) => total + Math.exp(logit - largest), 0));
  return logits.map(logit => logit - normaliser);
}

/** Log-probabilities of the next token; padding and <bos> are never written. */
function nextToken(logits) {
  const logProbs = logSoftmax(logits);
  logProbs[PAD] = logProbs[BOS] = -Infinity;
  return logProbs;
}

/** The decoder after <bos> and the prefix: its state, the log-probabilities of what comes next, and the sum so far. */
function begin(model, source, prefix) {
  const state = start(model, encoder(model, source));
  let logProbs = nextToken(step(state, [BOS])[0]);
  let logProb = 0;
  for (const id of prefix) {
    logProb += logProbs[id];
    logProbs = nextToken(step(state, [id])[0]);
  }
  return { state, logProbs, logProb };
}

function* oneByOne(model, source, prefix, choose) {
  let { state, logProbs, logProb } = begin(model, source, prefix);
  const tokens = [...prefix];
  while (tokens.length < limit(source.length) && tokens.at(-1) !== EOS) {
    const id = choose(logProbs);
    tokens.push(id);
    logProb += logProbs[id];
    yield tokens;
    if (id !== EOS) logProbs = nextToken(step(state, [id])[0]);
  }
  return { tokens, logProb, score: logProb, finished: tokens.at(-1) === EOS };
}

/** The most probable token at each step, of equal ones the one with the smallest id. */
export function greedy(model, source, { prefix = [] } = {}) {
  return oneByOne(model, source, prefix, logProbs => top(logProbs, 1)[0]);
}

/** Numbers in [0, 1) from a seed: the generator mulberry32. */
export function mulberry32(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Ids and probabilities to draw from: of the most probable tokens the fewest whose probability reaches `topP`. */
export function nextTokenDistribution(logProbs, { temperature = 1, topP = 1 } = {}) {
  const largest = logProbs.reduce((a, b) => Math.max(a, b));
  const probabilities = softmax(Array.from(logProbs, value => (value - largest) / temperature));
  const ids = top(logProbs, logProbs.length);
  let before = 0;
  const kept = topP < 1 ? ids.filter(id => (before += probabilities[id]) - probabilities[id] < topP) : ids;
  const total = sum(kept.map(id => probabilities[id]));
  return kept.map(id => [id, probabilities[id] / total]);
}

/** Each token drawn at random from `nextTokenDistribution`. */
export function sample(model, source, { prefix = [], seed = 0, ...cuts } = {}) {
  const random = mulberry32(seed);
  return oneByOne(model, source, prefix, logProbs => {
    const distribution = nextTokenDistribution(logProbs, cuts);
    let left = random();
    return (distribution.find(([, probability]) => (left -= probability) < 0) ?? distribution[0])[0];
  });
}

/** Places of the k largest values, the largest first; of equal ones the smaller place first. */
function top(values, k) {
  if (k > 32) return range(values.length).sort((a, b) => values[b] - values[a] || a - b).slice(0, k);
  const best = [];
  for (let place = 0; place < values.length; place++) {
    if (best.length === k && !(values[place] > values[best[k - 1]])) continue;
    let at = best.length;
    while (at && values[place] > values[best[at - 1]]) at--;
    best.splice(at, 0, place);
    if (best.length > k) best.pop();
  }
  return best;
}

/** Keep the `beamSize` best beginnings at each step; scores are sums of log-probabilities / n^lengthPenalty. */
export function* beam(model, source, { beamSize = 5, lengthPenalty = 1, prefix = [] } = {}) {
  const { state, logProbs, logProb } = begin(model, source, prefix);
  const most = limit(source.length), found = [];
  let open = [{ tokens: prefix, logProb }], rows = [logProbs], n = prefix.length;
  const close = () => {
    const isClosed = ({ tokens }) => tokens.at(-1) === EOS || n >= most;
    found.push(...open.filter(isClosed).map(one => ({ ...one, score: one.logProb / n ** lengthPenalty })));
    open = open.filter(one => !isClosed(one));
  };
  close(); // a prefix may be a whole sentence
  while (open.length) {
    n++;
    // The best of all candidates are among the best of each hypothesis. Sorting is stable, so of equal sums the one
    // that continues the better hypothesis comes first. Sums are rounded to float32 as in Python.
    const candidates = open.flatMap((hypothesis, row) => top(rows[row], beamSize).map(id => ({
      tokens: [...hypothesis.tokens, id], logProb: Math.fround(hypothesis.logProb + rows[row][id]), row,
    })));
    open = candidates.sort((a, b) => b.logProb - a.logProb).slice(0, beamSize);
    yield open[0].tokens;
    close();
    // A sum only falls, and is divided by most at the limit; with a negative penalty, at the next step.
    const longest = lengthPenalty >= 0 ? most : n + 1;
    if (!open.length || found.some(({ score }) => score >= open[0].logProb / longest ** lengthPenalty)) break;
    rows = step(state, open.map(({ tokens }) => tokens.at(-1)), open.map(({ row }) => row)).map(nextToken);
  }
  const hypotheses = found.sort((a, b) => b.score - a.score).slice(0, beamSize).map(
    ({ tokens, logProb, score }) => ({ tokens, logProb, score, finished: tokens.at(-1) === EOS }),
  );
  return { ...hypotheses[0], hypotheses };
}

// ------------------------------------------------------------------------------------------------ a look inside

const inputs = target => [BOS, ...target.slice(0, -1)]; // token t is written after these t + 1

function readWhole(model, source, target, look) {
  const state = start(model, encoder(model, source, look));
  const causal = target.map((_, t) => range(t + 1));
  return decoder(state, inputs(target), range(target.length), causal, look); // (L_target, V)
}

/** Attention maps, zero where a query may not attend: {layers, heads, len_q, len_k, weights (layer, head, q, k)}. */
function recorder({ config }, lengthOfSource, lengthOfTarget) {
  const map = (len_q, len_k) => {
    const [layers, heads] = [config.num_layers, config.num_heads];
    return { layers, heads, len_q, len_k, weights: new Float32Array(layers * heads * len_q * len_k) };
  };
  const maps = {
    encoder: map(lengthOfSource, lengthOfSource),
    decoder: map(lengthOfTarget, lengthOfTarget),
    cross: map(lengthOfTarget, lengthOfSource),
  };
  const look = (kind, layer) => ({ head, position, places, weights }) => {
    const { heads, len_q, len_k, weights: all } = maps[kind];
    const row = ((layer * heads + head) * len_q + position) * len_k;
    places.forEach((place, j) => { all[row + place] = weights[j]; });
  };
  return { maps, look };
}

/** All attention weights, and the logits (L_target, V) with which each target token was written. */
export function inspect(model, sourceIds, targetIds) {
  const { maps, look } = recorder(model, sourceIds.length, targetIds.length);
  return { logits: readWhole(model, sourceIds, targetIds, look), ...maps };
}

/** What one head of one layer computes for one query: its vector, keys, values, scores, weights and output. */
export function inspectHead(model, sourceIds, targetIds, { kind, layer, head, query }) {
  let found = null;
  const look = (...here) => one => {
    if (here[0] === kind && here[1] === layer && one.head === head && one.position === query) found = one;
  };
  if (kind === "encoder") encoder(model, sourceIds, look);
  else readWhole(model, sourceIds, targetIds, look);
  return found;
}

/** For each written token: its probability, and the `k` most probable tokens of that step. */
export function steps(logits, targetIds, tokens, k = 8) {
  return logits.map((row, t) => {
    const logProbs = nextToken(row);
    const described = id => ({ id, token: tokens([id])[0], probability: Math.exp(logProbs[id]) });
    return { chosen: described(targetIds[t]), top: top(logProbs, k).map(described) };
  });
}
