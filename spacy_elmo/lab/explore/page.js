"use strict";
// Text from the user or the corpus only becomes text nodes. It is never parsed as markup.

const SIZE = 320;
const MARGIN = 18;
const EXCERPT = { left: 48, right: 64 };
const SURPRISE = 18; // bits of surprise for the full colour
const FULL = 50; // strength of the full colour, in per cent
const SVG = "http://www.w3.org/2000/svg";
const EXAMPLES = [
  ["a river bank", "She sat on the bank of the river.", ""],
  ["two banks", "The bank lent him the money.", "He walked along the bank of the river."],
  ["two ways to play", "They play the new song every night.", "The children play in the garden."],
];
const SHADES = {
  before: "surprise, given the words before",
  after: "surprise, given the words after",
  likeness: "similarity to the chosen word",
};

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function drawn(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const number = (value) => value.toLocaleString("en");
const percent = (value) => (value < 0.01 ? "<1 %" : `${Math.round(100 * value)} %`);

// Lists and maps of the uses of a word, for the live page and the static page.

const letter = (query) => String.fromCharCode(65 + (query % 26));
const label = (view, query, rank) => (view.queries.length > 1 ? letter(query) : "") + (rank + 1);

function sentence(use) {
  return [use.left, element("b", {}, use.word), use.right];
}

function excerpt(use) {
  const cut = use.left.length > EXCERPT.left;
  const left = cut ? "… " + use.left.slice(-EXCERPT.left).replace(/^\S*\s+/, "") : use.left;
  const over = use.right.length > EXCERPT.right;
  const right = over ? use.right.slice(0, EXCERPT.right).replace(/\s+\S*$/, "") + " …" : use.right;
  return [left, element("b", {}, use.word), right];
}

function show(view, use) {
  for (const node of document.querySelectorAll(".on")) node.classList.remove("on");
  for (const node of document.querySelectorAll(`[data-use="${use}"]`)) node.classList.add("on");
  const detail = byId("detail");
  const { source } = view.sentences[use];
  const sense = view.senses && view.senses.of[use] !== null ? view.senses.names[view.senses.of[use]] : "";
  const origin = element("span", { className: "number" }, [source, sense].filter(Boolean).join(" · "));
  const close = element("button", { type: "button" }, "Close");
  close.addEventListener("click", hideDetail);
  const text = element("span", { dir: "auto" }, ...sentence(view.sentences[use]), " ", origin);
  detail.replaceChildren(element("span", {}, text, close));
  detail.hidden = false;
}

function hideDetail() {
  for (const node of document.querySelectorAll(".on")) node.classList.remove("on");
  byId("detail").hidden = true;
}

function pointsTo(node, view, use) {
  for (const event of ["pointerenter", "focus", "click"]) node.addEventListener(event, () => show(view, use));
  node.dataset.use = use;
  return node;
}

function neighborList(view, layer, query) {
  const items = layer.neighbors[query].map(({ use, cosine }, rank) => {
    const button = element(
      "button",
      { type: "button", className: "use" },
      element("span", { className: "mark" }, label(view, query, rank)),
      element("span", { dir: "auto" }, ...excerpt(view.sentences[use])),
      element("span", { className: "number", title: "cosine of the two vectors" }, cosine.toFixed(2)),
    );
    return element("li", {}, pointsTo(button, view, use));
  });
  return element("ol", { className: "uses" }, ...items);
}

function map(view, layer) {
  const all = [...layer.points, ...layer.queries];
  const [xs, ys] = [0, 1].map((axis) => all.map((point) => point[axis]));
  const middle = [xs, ys].map((values) => (Math.min(...values) + Math.max(...values)) / 2);
  const reach = Math.max(...[xs, ys].map((values) => Math.max(...values) - Math.min(...values))) / 2 || 1;
  const place = ([x, y]) => {
    const at = (value, axis) => ((SIZE / 2 - MARGIN) * (value - middle[axis])) / reach;
    return `translate(${(SIZE / 2 + at(x, 0)).toFixed(1)} ${(SIZE / 2 - at(y, 1)).toFixed(1)})`;
  };
  const marks = new Map();
  layer.neighbors.forEach((nearby, query) =>
    nearby.forEach(({ use }, rank) => marks.has(use) || marks.set(use, label(view, query, rank))),
  );
  const groups = layer.points.map((point, use) => {
    const sense = view.senses ? view.senses.of[use] : null;
    const classes = [marks.has(use) ? "neighbor" : "", sense === null ? "" : `sense-${sense}`].join(" ");
    const group = drawn("g", { transform: place(point), class: classes }, drawn("circle", { r: marks.has(use) ? 8 : 3.5 }));
    if (marks.has(use)) group.append(drawn("text", {}, marks.get(use)));
    return pointsTo(group, view, use);
  });
  const queries = layer.queries.map((point, query) => {
    const group = drawn("g", { transform: place(point), class: "query" }, drawn("circle", { r: 11 }));
    if (view.queries.length > 1) group.append(drawn("text", { class: "letter", y: -17 }, letter(query)));
    return group;
  });
  const svg = drawn(
    "svg",
    {
      class: "map", viewBox: `0 0 ${SIZE} ${SIZE}`, tabindex: 0, role: "application",
      "aria-label": `Map of ${layer.points.length} uses. The arrow keys move from use to use, nearest first.`,
    },
    ...groups.filter((_, use) => !marks.has(use)),
    ...groups.filter((_, use) => marks.has(use)).reverse(),
    ...queries,
  );
  walk(svg, view, layer);
  return svg;
}

// The arrow keys move through the uses in the order of their distance from the first query, or from the middle.
function walk(svg, view, layer) {
  const [x, y] = layer.queries[0] || [0, 0];
  const distance = (use) => Math.hypot(layer.points[use][0] - x, layer.points[use][1] - y);
  const order = layer.points.map((_, use) => use).sort((a, b) => distance(a) - distance(b));
  let place = -1;
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    place = Math.min(Math.max(place + step, 0), order.length - 1);
    show(view, order[place]);
  });
}

function legend(view, own) {
  const entry = (kind, text) => element("span", {}, element("i", { className: `dot ${kind}` }), text);
  const entries = [];
  if (view.queries.length) entries.push(entry("is-query", own), entry("is-neighbor", "nearest uses"));
  if (view.senses) view.senses.names.forEach((name, sense) => entries.push(entry(`sense-${sense}`, name)));
  else entries.push(entry("", "other uses"));
  return element("div", { className: "legend" }, ...entries);
}

const axes = (layer) =>
  `Close points are similar uses. The two axes show ${percent(layer.shares[0] + layer.shares[1])} of the variance.`;

function panel(title, ...children) {
  return element("section", { className: "panel" }, element("h3", {}, title), ...children);
}

function widePanel(title, ...children) {
  const wide = panel(title, ...children);
  wide.classList.add("wide");
  return wide;
}

function staticPage(view) {
  byId("about").textContent = `${number(view.sentences.length)} uses from ${view.source}`;
  byId("queries").replaceChildren(
    ...view.queries.map((use, query) => {
      const mark = element("span", { className: "mark query-mark" }, view.queries.length > 1 ? letter(query) : "●");
      return element("p", { className: "query", dir: "auto" }, mark, element("span", {}, ...sentence(use)));
    }),
  );
  byId("queries").hidden = !view.queries.length;
  const panels = view.layers.map((layer) =>
    panel(
      layer.name[0].toUpperCase() + layer.name.slice(1),
      element("p", { className: "quiet" }, axes(layer)),
      map(view, layer),
      legend(view, view.queries.length > 1 ? "the sentences above" : "the sentence above"),
      ...view.queries.map((_, query) => neighborList(view, layer, query)),
    ),
  );
  byId("maps").replaceChildren(...panels);
}

// The live page.

const state = { corpus: null, texts: [], sentences: [], chosen: null, answer: null, shade: "before", asked: 0 };

async function ask(path, body) {
  const request = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(`api/${path}`, request);
  } catch {
    throw new Error("The server does not answer. Is `spacy elmo explore` still running?");
  }
  if (response.status === 413) throw new Error("The text is too long.");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// Show only the answer to the last question, or its error.
async function answered(path, body, use) {
  const turn = ++state.asked;
  document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await ask(path, body);
    if (turn !== state.asked) return;
    byId("problem").textContent = "";
    use(answer);
  } catch (error) {
    if (turn === state.asked) byId("problem").textContent = error.message;
  }
  if (turn === state.asked) document.body.removeAttribute("aria-busy");
}

function submit() {
  const [first, second] = ["first", "second"].map((id) => byId(id).value.trim());
  const texts = second ? [first, second] : [first];
  if (!texts[0]) {
    byId("problem").textContent = "The sentence is empty. Write a few words.";
    return;
  }
  const longest = Math.max(...texts.map((text) => text.length));
  if (longest > state.corpus.max_characters) {
    byId("problem").textContent =
      `A sentence has ${number(longest)} characters. The limit is ${number(state.corpus.max_characters)}.`;
    return;
  }
  answered("sentences", { texts }, ({ sentences }) => {
    Object.assign(state, { texts, sentences, chosen: null, answer: null });
    if (state.shade === "likeness" && state.corpus.language_model) state.shade = "before";
    byId("word").hidden = true;
    hideDetail();
    byId("line").hidden = false;
    drawLine();
  });
}

function choose(sentence, token) {
  answered("word", { texts: state.texts, sentence, token }, (answer) => {
    Object.assign(state, { chosen: [sentence, token], answer });
    if (state.texts.length > 1) state.shade = "likeness";
    byId("word").hidden = false;
    hideDetail();
    drawLine();
    drawWord();
  });
}

const layerNow = () => Number(byId("layer").value);

function drawLine() {
  const focused = document.activeElement?.closest(".word")?.dataset.place;
  drawShades();
  byId("sentences").replaceChildren(...state.sentences.map(drawSentence));
  byId("sentences").className = `by-${state.shade}`;
  byId("scale").replaceChildren(...scale());
  if (focused) document.querySelector(`[data-place="${focused}"]`)?.focus();
}

function drawShades() {
  const possible = state.corpus.language_model ? Object.keys(SHADES) : ["likeness"];
  const choices = possible.map((shade) => {
    const input = element("input", { type: "radio", name: "shade", value: shade, checked: shade === state.shade });
    input.disabled = shade === "likeness" && !state.answer;
    input.addEventListener("change", () => {
      state.shade = shade;
      drawLine();
      document.querySelector(`input[value=${shade}]`).focus();
    });
    return element("label", {}, input, SHADES[shade]);
  });
  byId("shades").replaceChildren(byId("shades").querySelector("legend"), ...choices);
}

function drawSentence(tokens, sentence) {
  const [chosenSentence, chosenToken] = state.chosen || [sentence, tokens.findIndex((token) => !token.blank)];
  const words = tokens.flatMap((token, place) => {
    if (token.blank) return [];
    const isChosen = Boolean(state.chosen) && sentence === chosenSentence && place === chosenToken;
    const [amount, caption] = shade(token, sentence, place, isChosen);
    const button = element(
      "button",
      {
        type: "button", className: token.unknown ? "word unknown" : "word", "aria-pressed": isChosen,
        tabIndex: place === (sentence === chosenSentence ? chosenToken : tokens.findIndex((one) => !one.blank)) ? 0 : -1,
        title: token.unknown ? "This word is not in the vocabulary, so its surprise is unknown." : "",
      },
      element("span", {}, token.text),
      element("small", {}, caption),
    );
    button.dataset.place = `${sentence}-${place}`;
    button.style.setProperty("--amount", amount);
    button.addEventListener("click", () => choose(sentence, place));
    return [button];
  });
  const line = element("div", { className: "sentence", role: "toolbar", dir: "auto", "aria-label": `Words of sentence ${sentence + 1}` }, ...words);
  line.addEventListener("keydown", (event) => {
    const forwards = getComputedStyle(line).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const backwards = forwards === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const from = words.indexOf(document.activeElement);
    const to = { [forwards]: from + 1, [backwards]: from - 1, Home: 0, End: words.length - 1 }[event.key];
    if (to === undefined || !words[to]) return;
    event.preventDefault();
    words[from].tabIndex = -1;
    words[to].tabIndex = 0;
    words[to].focus();
  });
  return line;
}

function shade(token, sentence, place, isChosen) {
  if (state.shade === "likeness") {
    if (!state.answer) return [0, "\u00a0"];
    const cosine = state.answer.likeness[sentence][layerNow()][place];
    return [isChosen ? 0 : FULL * Math.max(cosine, 0), isChosen ? "chosen" : cosine.toFixed(2)];
  }
  if (token.unknown) return [0, "unknown"];
  const bits = token.surprise[state.shade];
  return [FULL * Math.min(bits / SURPRISE, 1), bits.toFixed(1)];
}

function scale() {
  const ramp = element("i", { className: `ramp by-${state.shade}` });
  if (state.shade === "likeness") return ["different", ramp, `similar: cosine of the vectors in layer ${layerNow()}, without the mean of the corpus`];
  return ["expected", ramp, "surprising, in bits: one more bit halves the probability. Choose a word to see its uses."];
}

function drawWord() {
  const { answer } = state;
  const layer = layerNow();
  byId("chosen").replaceChildren("The word ", element("bdi", {}, `“${answer.word}”`));
  const top = state.corpus.layers - 1;
  byId("layer-name").textContent = layer === 0 ? "0: only the letters" : `${layer} of ${top}`;
  byId("layer-hint").textContent =
    layer === 0
      ? "Layer 0 does not see the sentence. Every use of a word has the same vector here, so there is nothing to map."
      : "Lower layers represent more grammar, upper layers more meaning.";
  const view = answer.uses;
  const panels = [];
  if (layer === 0) panels.push(spellings(answer));
  else if (view) panels.push(...uses(answer, view, view.layers[layer - 1]));
  else panels.push(widePanel("Uses", element("p", {}, "The corpus does not contain this word."), spellingList(answer)));
  if (answer.substitutes) panels.push(substitutes(answer));
  byId("panels").replaceChildren(...panels);
}

function uses(answer, view, layer) {
  const sampled = view.sentences.length < answer.count ? `, of which ${number(view.sentences.length)} are compared` : "";
  const counted = `${number(answer.count)} ${answer.count === 1 ? "use" : "uses"} in the corpus${sampled}. The numbers are cosines.`;
  return [
    panel("Nearest uses", element("p", { className: "quiet" }, counted), neighborList(view, layer, 0)),
    panel("Map of its uses", element("p", { className: "quiet" }, axes(layer)), map(view, layer), legend(view, "your sentence")),
  ];
}

function spellings(answer) {
  const remark = "The numbers are the cosine of the two vectors, and how often the corpus uses the word.";
  return widePanel("Words of similar spelling", element("p", { className: "quiet" }, remark), spellingList(answer));
}

function spellingList({ spellings: words }) {
  const rows = words.map(({ word, count, cosine }) =>
    bar(Math.max(cosine, 0), word, `${cosine.toFixed(2)} · ${number(count)} ×`),
  );
  return element("ol", { className: "columns" }, ...rows);
}

function substitutes({ word, substitutes: lists }) {
  const titles = { before: "from the words before", after: "from the words after", both: "from both" };
  const columns = Object.entries(titles).map(([context, title]) => {
    const rows = lists[context].map((one) => bar(one.probability, one.word, percent(one.probability)));
    return element("div", {}, element("h4", {}, title), element("ol", {}, ...rows));
  });
  return widePanel("Words that the language model predicts here", element("div", { className: "columns" }, ...columns));
}

function bar(amount, word, remark) {
  const row = element("li", { className: "bar" }, element("bdi", {}, word), element("span", { className: "number" }, remark));
  row.style.setProperty("--amount", 100 * amount);
  return row;
}

async function live() {
  state.corpus = await ask("corpus");
  const { weights, tokens, sentences, layers, language_model } = state.corpus;
  byId("about").textContent = `${weights}, with a corpus of ${number(tokens)} words in ${number(sentences)} sentences`;
  byId("layer").max = byId("layer").value = layers - 1;
  if (!language_model) state.shade = "likeness";
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  for (const id of ["first", "second"]) {
    byId(id).addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      submit();
    });
  }
  byId("layer").addEventListener("input", () => {
    hideDetail();
    drawLine();
    drawWord();
  });
  byId("examples").replaceChildren(
    ...EXAMPLES.map(([name, first, second]) => {
      const button = element("button", { type: "button" }, name);
      button.addEventListener("click", () => {
        [byId("first").value, byId("second").value] = [first, second];
        submit();
      });
      return button;
    }),
  );
  byId("first").focus();
}

document.addEventListener("keydown", (event) => event.key === "Escape" && hideDetail());
if (byId("view")) staticPage(JSON.parse(byId("view").textContent));
else live().catch((error) => (byId("problem").textContent = error.message));
