"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const $ = (selector) => document.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const { names, links, factors } = page;
  const linksOf = names.map(() => []);
  links.feature.forEach((feature, link) => linksOf[feature].push(link));
  const lowered = names.map((name) => name.toLowerCase());
  let found = null; // features that match the search, or null for all

  // -- tables that sort ---------------------------------------------------------------------------------

  const cellValue = (row, column) => {
    const text = row.cells[column].dataset.value ?? row.cells[column].textContent;
    const number = Number(text);
    return text.trim() === "" || Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });

  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [cellValue(row, column), row]);
      const before = head.getAttribute("aria-sort");
      const first = rows.some(([value]) => typeof value === "string") || column === 0 ? "ascending" : "descending";
      const direction = before ? (before === "ascending" ? "descending" : "ascending") : first;
      rows.sort((a, b) => (direction === "ascending" ? compare(a[0], b[0]) : compare(b[0], a[0])));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      body.append(...rows.map(([, row]) => row));
      if (table.id === "feature-table") showFeatures();
    }));
  }

  // -- features: search, role, factor -------------------------------------------------------------------

  const STEP = 100;
  let limit = STEP;
  const body = $("#feature-table tbody");
  const role = $("#feature-role"), ofFactor = $("#feature-factor"), more = $("#more-rows");
  const roles = linksOf.map((own) => (own.length === 0 ? "none" : own.length === 1 ? "anchor" : "shared"));

  const wanted = (feature) =>
    (found === null || found.has(feature)) &&
    (role.value === "" || roles[feature] === role.value) &&
    (ofFactor.value === "" || linksOf[feature].some((link) => links.factor[link] === Number(ofFactor.value)));

  function showFeatures() {
    let count = 0;
    for (const row of body.rows) {
      const fits = wanted(Number(row.dataset.feature));
      if (fits) count += 1;
      row.hidden = !fits || count > limit;
    }
    more.hidden = count <= limit;
    more.textContent = `Show ${Math.min(STEP, count - limit)} more`;
    $("#feature-status").textContent =
      `${Math.min(count, limit).toLocaleString("en")} of ${count.toLocaleString("en")} shown`;
  }
  const showFromStart = () => { limit = STEP; showFeatures(); };
  role.addEventListener("change", showFromStart);
  ofFactor.addEventListener("change", showFromStart);
  more.addEventListener("click", () => { limit += STEP; showFeatures(); });
  for (const link of all(".more-features")) {
    link.addEventListener("click", () => { ofFactor.value = link.dataset.factor; role.value = ""; clearSearch(); });
  }

  const search = $("#search"), status = $("#search-status");
  function runSearch() {
    const words = search.value.trim().toLowerCase();
    found = words === "" ? null : new Set(lowered.flatMap((name, feature) => (name.includes(words) ? [feature] : [])));
    status.replaceChildren();
    if (found !== null) {
      status.append(found.size === 0 ? "No feature has this in its name." :
        `${found.size.toLocaleString("en")} ${found.size === 1 ? "feature" : "features"}. `);
      const used = new Set([...found].flatMap((feature) => linksOf[feature].map((link) => links.factor[link])));
      if (found.size > 0) status.append(used.size === 0 ? "It uses no factor." : "Factors: ");
      for (const factor of [...used].sort((a, b) => a - b).slice(0, 20)) {
        const chip = document.createElement("a");
        chip.className = "chip";
        chip.href = `#${factors[factor].id}`;
        chip.textContent = factors[factor].id;
        chip.title = `${factors[factor].name}: ${factors[factor].label}`;
        status.append(chip, " ");
      }
      if (used.size > 20) status.append(`and ${used.size - 20} more`);
    }
    showFromStart();
    if (map) map.filter();
  }
  function clearSearch() { search.value = ""; runSearch(); }
  search.addEventListener("input", runSearch);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") clearSearch();
    if (event.key === "Enter" && found !== null && found.size > 0) $("#features").scrollIntoView();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); search.focus(); }
  });

  // -- cards: sort and filter -----------------------------------------------------------------------------

  const cards = all(".card"), cardSort = $("#card-sort"), verdicts = all(".card-verdict");
  const cardKeys = {
    order: (card) => Number(card.dataset.order), verdict: (card) => Number(card.dataset.rank),
    size: (card) => -Number(card.dataset.size), returns: (card) => -Number(card.dataset.returns),
    cost: (card) => -Number(card.dataset.cost),
  };
  function showCards() {
    const key = cardKeys[cardSort.value];
    const order = [...cards].sort((a, b) => key(a) - key(b) || cardKeys.order(a) - cardKeys.order(b));
    $("#card-list").append(...order);
    const shown = new Set(verdicts.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const card of cards) {
      card.hidden = verdicts.length > 0 && !shown.has(card.dataset.verdict);
      if (!card.hidden) count += 1;
    }
    $("#card-status").textContent = count === cards.length ? "" : `${count} of ${cards.length} cards`;
  }
  if (cardSort) for (const control of [cardSort, ...verdicts]) control.addEventListener("change", showCards);

  // -- words: what is typical of a factor, as the slider has it -----------------------------------------------

  const slider = $("#relevance"), WORDS = 12;
  function rankWords() {
    const weight = Number(slider.value);
    $("#relevance-status").textContent = `λ = ${weight.toFixed(2)}`;
    for (const list of all(".word-list")) {
      const { features, high } = page.words[Number(list.dataset.factor)];
      const score = features.map((feature, i) => {
        const there = Math.log(Math.max(high[i], 1e-12)), overall = Math.log(Math.max(page.overall[feature], 1e-12));
        return weight * there + (1 - weight) * (there - overall);
      });
      const order = features.map((_, i) => i).sort((a, b) => score[b] - score[a] || a - b).slice(0, WORDS);
      const largest = Math.max(1e-12, ...order.map((i) => Math.max(high[i], page.overall[features[i]])));
      list.querySelector("ol").replaceChildren(...order.map((i) => {
        const item = document.createElement("li"), word = document.createElement("span"), name = document.createElement("bdi");
        word.className = "word";
        name.textContent = short(names[features[i]], 34);
        word.append(name);
        const bars = document.createElement("span");
        bars.className = "bars";
        bars.ariaHidden = "true";
        bars.title = `expected ${high[i].toPrecision(3)}, overall ${page.overall[features[i]].toPrecision(3)}`;
        for (const [kind, value] of [["high", high[i]], ["overall", page.overall[features[i]]]]) {
          const bar = document.createElement("i");
          bar.className = kind;
          bar.style.setProperty("--v", (value / largest).toFixed(3));
          bars.append(bar);
        }
        item.append(word, bars);
        return item;
      }));
    }
  }
  if (slider) slider.addEventListener("input", rankWords);

  // -- the mask -------------------------------------------------------------------------------------------

  const words = { 1: "rises", "-1": "falls", 0: "no single direction" };
  const percent = (share) => (share > 0 && share < 0.005 ? "less than 1%" : `${Math.round(100 * share)}%`);
  const short = (text, longest) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);
  // As much of a name as there is room for; squeezing it into the room makes it illegible.
  const fitting = (pen, text, room) => {
    const shown = short(text, 200);
    if (pen.measureText(shown).width <= room) return shown;
    let low = 1, high = shown.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (pen.measureText(`${shown.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
    }
    return `${shown.slice(0, low)}…`;
  };
  let gone = new Set(), extra = new Map(); // links left out at the step shown, and factors of features that it adds
  const heaviest = linksOf.map((own) => Math.max(1e-12, ...own.map((link) => Math.abs(links.weight[link]))));
  const sizes = links.strength.map(Math.abs).sort((a, b) => a - b);
  const full = Math.max(sizes[Math.floor(0.95 * (sizes.length - 1))] || 1, 1e-9);

  function heatMap() {
    const box = $("#map"), canvas = $("#map canvas"), overview = $("#overview"), readout = $("#map-readout");
    const order = $("#map-order"), factor = $("#map-factor"), colour = $("#map-colour");
    const spacer = document.createElement("div");
    box.append(spacer);
    const ROW = 20, HEAD = 26;
    const pen = canvas.getContext("2d");
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const longest = Math.max(40, ...names.slice(0, 2000).map((name) => pen.measureText(short(name, 60)).width));
    let rows = [], cell = { row: -1, column: 0 }, width = 0, height = 0, label = 0, column = 0, theme = {}, queued = false;

    const intensity = (link) => {
      if (colour.value === "weight") return Math.abs(links.weight[link]) / heaviest[links.feature[link]];
      if (colour.value === "selected") return links.selected[link];
      return Math.min(1, Math.abs(links.strength[link]) / full);
    };
    const hue = (link) => (links.direction[link] > 0 ? theme.pos : links.direction[link] < 0 ? theme.neg : theme.bent);

    function readTheme() {
      const style = getComputedStyle(document.documentElement);
      for (const name of ["paper", "ink", "soft", "line", "grid", "pos", "neg", "bent", "accent", "panel"])
        theme[name] = style.getPropertyValue(`--${name}`).trim();
      theme.font = getComputedStyle(document.body).fontFamily;
    }

    function filter() {
      const keep = page.order.filter((feature) => found === null || found.has(feature));
      rows = factor.value === "" ? keep :
        keep.filter((feature) => linksOf[feature].some((link) => links.factor[link] === Number(factor.value)));
      if (order.value === "table") rows = [...rows].sort((a, b) => a - b);
      if (order.value === "name") rows = [...rows].sort((a, b) => compare(names[a], names[b]));
      cell.row = Math.min(cell.row, rows.length - 1);
      layout();
    }

    function layout() {
      const most = Math.max(220, Math.round(0.62 * window.innerHeight));
      const tall = HEAD + rows.length * ROW + 4;
      overview.hidden = tall <= most;
      overview.style.width = "96px";
      box.style.height = `${Math.min(tall, most)}px`;
      box.style.maxWidth = "none";
      const spare = box.clientWidth - 8 - 36 * factors.length; // where columns are few, names may have more
      label = Math.round(Math.min(longest + 20, Math.max(90, 0.3 * box.clientWidth, Math.min(spare, 0.5 * box.clientWidth))));
      column = Math.max(16, Math.min(64, Math.floor((box.clientWidth - label - 8) / factors.length)));
      box.style.maxWidth = `${label + column * factors.length + 24}px`;
      width = box.clientWidth;
      height = box.clientHeight;
      spacer.style.height = `${Math.max(0, HEAD + rows.length * ROW - height)}px`;
      spacer.style.width = `${Math.max(width, label + column * factors.length + 8)}px`;
      const scale = window.devicePixelRatio || 1;
      for (const [target, w, h] of [[canvas, width, height], [overview, 96, height]]) {
        target.width = Math.round(w * scale);
        target.height = Math.round(h * scale);
        target.style.width = `${w}px`;
        target.style.height = `${h}px`;
        target.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
      }
      draw();
    }

    function draw() {
      if (queued) return;
      queued = true;
      requestAnimationFrame(() => { queued = false; paint(); });
    }

    function paint() {
      const g = canvas.getContext("2d"), top = box.scrollTop, left = box.scrollLeft;
      g.fillStyle = theme.paper;
      g.fillRect(0, 0, width, height);
      const first = Math.floor(top / ROW), last = Math.min(rows.length, Math.ceil((top + height) / ROW));
      const x0 = label - left;
      g.font = `12px ${theme.font}`;
      g.textBaseline = "middle";
      for (let row = first; row < last; row += 1) {
        const y = HEAD + row * ROW - top, feature = rows[row];
        if (row === cell.row) { g.fillStyle = theme.panel; g.fillRect(0, y, width, ROW); }
        g.fillStyle = theme.grid;
        g.fillRect(label, y + ROW - 1, Math.min(width, x0 + factors.length * column) - label, 1);
        g.strokeStyle = theme.accent;
        g.lineWidth = 1;
        for (const added of extra.get(feature) ?? []) {
          const x = x0 + added * column;
          if (x + column >= label && x <= width) g.strokeRect(x + 1.5, y + 1.5, column - 3, ROW - 4);
        }
        for (const link of linksOf[feature]) {
          if (gone.has(link)) continue;
          const x = x0 + links.factor[link] * column;
          if (x + column < label || x > width) continue;
          g.fillStyle = hue(link);
          g.globalAlpha = 0.2 + 0.8 * intensity(link);
          g.fillRect(x + 1, y + 1, column - 2, ROW - 3);
          g.globalAlpha = 1;
        }
        if (row === cell.row) {
          g.strokeStyle = theme.ink;
          g.lineWidth = 1.5;
          g.strokeRect(x0 + cell.column * column + 0.75, y + 0.75, column - 1.5, ROW - 2.5);
        }
      }
      g.fillStyle = theme.paper;
      g.fillRect(0, HEAD, label - 2, height);
      g.textAlign = "right";
      for (let row = first; row < last; row += 1) {
        g.fillStyle = row === cell.row ? theme.ink : theme.soft;
        g.fillText(fitting(g, names[rows[row]], label - 14), label - 8, HEAD + row * ROW - top + ROW / 2, label - 14);
      }
      g.fillStyle = theme.paper;
      g.fillRect(0, 0, width, HEAD);
      g.fillStyle = theme.line;
      g.fillRect(0, HEAD - 1, width, 1);
      g.textAlign = "center";
      const every = column < 24 ? 2 : 1;
      factors.forEach((item, index) => {
        const x = x0 + (index + 0.5) * column;
        if (x < label || (index % every && index !== cell.column)) return;
        g.fillStyle = cell.row >= 0 && index === cell.column ? theme.accent : theme.soft;
        g.fillText(item.id, x, HEAD / 2);
      });
      if (!overview.hidden) paintOverview(top);
    }

    function paintOverview(top) {
      const g = overview.getContext("2d"), w = 96, step = height / rows.length, wide = (w - 6) / factors.length;
      g.fillStyle = theme.paper;
      g.fillRect(0, 0, w, height);
      rows.forEach((feature, row) => {
        for (const link of linksOf[feature]) {
          if (gone.has(link)) continue;
          g.fillStyle = hue(link);
          g.globalAlpha = 0.25 + 0.75 * intensity(link);
          g.fillRect(3 + links.factor[link] * wide, row * step, Math.max(1, wide - 0.3), Math.max(0.8, step));
        }
      });
      g.globalAlpha = 1;
      g.strokeStyle = theme.ink;
      g.lineWidth = 1.5;
      const total = rows.length * ROW;
      g.strokeRect(1, (top / total) * height + 1, w - 2, Math.max(6, ((height - HEAD) / total) * height - 2));
    }

    function describe() {
      if (cell.row < 0 || rows.length === 0) return;
      const feature = rows[cell.row], item = factors[cell.column];
      const link = linksOf[feature].find((candidate) => links.factor[candidate] === cell.column);
      let text = "does not depend on this factor: an exact zero.";
      if (link !== undefined) {
        text = `${words[links.direction[link]]}; average effect ${links.effect[link].toPrecision(3)} per standard deviation; ` +
          `${percent(links.share[link])} of its variance` + (linksOf[feature].length === 1 ? "; anchor" : "") +
          (links.selected ? `; selected in ${percent(links.selected[link])} of the refits` : "") +
          (gone.has(link) ? "; left out by the simpler fit shown" : "") + ".";
      } else if (extra.get(feature)?.includes(cell.column)) {
        text = "an exact zero in this fit; the richer one shown has this link.";
      }
      const strong = document.createElement("strong"), name = document.createElement("bdi");
      name.textContent = short(names[feature], 120);
      strong.append(name, ` × ${item.name}`);
      const card = document.createElement("a");
      card.href = `#${item.id}`;
      card.textContent = "Card";
      readout.replaceChildren(strong, ` (${short(item.label, 80)}): ${text} `, card);
    }

    function select(row, columnIndex) {
      if (rows.length === 0) return;
      cell = { row: Math.max(0, Math.min(rows.length - 1, row)), column: Math.max(0, Math.min(factors.length - 1, columnIndex)) };
      const y = cell.row * ROW, x = cell.column * column;
      if (y < box.scrollTop) box.scrollTop = y;
      if (y + ROW > box.scrollTop + height - HEAD) box.scrollTop = y + ROW - height + HEAD + 4;
      if (x < box.scrollLeft) box.scrollLeft = x;
      if (label + x + column > box.scrollLeft + width) box.scrollLeft = label + x + column - width + 4;
      describe();
      draw();
    }

    box.addEventListener("scroll", draw);
    box.addEventListener("pointerdown", (event) => {
      const area = canvas.getBoundingClientRect();
      const y = event.clientY - area.top - HEAD + box.scrollTop, x = event.clientX - area.left - label + box.scrollLeft;
      if (y >= 0) select(Math.floor(y / ROW), Math.floor(x / column));
    });
    const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-20, 0], PageDown: [20, 0], Home: [-Infinity, 0], End: [Infinity, 0],
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && cell.row >= 0) { location.hash = factors[cell.column].id; focusCard(); }
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      select(cell.row < 0 ? 0 : cell.row + move[0], cell.row < 0 ? 0 : cell.column + move[1]);
    });
    overview.addEventListener("pointerdown", (event) => {
      const share = (event.clientY - overview.getBoundingClientRect().top) / height;
      box.scrollTop = share * rows.length * ROW - height / 2;
    });
    for (const control of [order, factor]) control.addEventListener("change", () => { cell.row = -1; box.scrollTop = 0; filter(); });
    colour.addEventListener("change", draw);
    window.addEventListener("resize", layout);
    readTheme();
    filter();
    return { filter, repaint: () => { readTheme(); draw(); }, redraw: () => { describe(); draw(); } };
  }

  // -- simplicity: walk to fits with more or fewer links -----------------------------------------------------

  const simplicity = $("#simplicity"), back = $("#simplicity-back");
  function showStep() {
    const step = page.steps[Number(simplicity.value)];
    gone = new Set(step.gone);
    extra = new Map();
    for (const [feature, factor] of step.more) extra.set(feature, [...(extra.get(feature) ?? []), factor]);
    for (const row of all("tr[data-link]")) row.classList.toggle("gone", gone.has(Number(row.dataset.link)));
    for (const point of all(".trade-figure .point")) {
      point.classList.toggle("now", Number(point.dataset.point) === step.point);
      if (point.classList.contains("now")) point.parentNode.append(point); // above others in the same place
    }
    const change = [];
    if (step.gone.length) change.push(`${step.gone.length.toLocaleString("en")} of this fit left out`);
    if (step.more.length) change.push(`${step.more.length.toLocaleString("en")} beyond it, outlined`);
    $("#simplicity-status").textContent = step.words + (change.length ? ` Links: ${change.join(", ")}.` : "");
    simplicity.setAttribute("aria-valuetext", step.words);
    back.hidden = simplicity.value === simplicity.dataset.chosen;
    if (map) map.redraw();
  }
  if (simplicity) {
    simplicity.addEventListener("input", showStep);
    back.addEventListener("click", () => { simplicity.value = simplicity.dataset.chosen; showStep(); simplicity.focus(); });
  }

  const focusCard = () => {
    const card = document.getElementById(location.hash.slice(1));
    if (card?.classList.contains("card")) { card.hidden = false; card.focus({ preventScroll: true }); card.scrollIntoView(); }
  };
  window.addEventListener("hashchange", focusCard);

  // -- theme and print ------------------------------------------------------------------------------------

  const dark = window.matchMedia("(prefers-color-scheme: dark)"), theme = $("#theme"), root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; if (map) map.repaint(); };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  dark.addEventListener("change", nameTheme);
  window.addEventListener("beforeprint", () => { for (const item of all("details")) item.open = true; });

  let map = null;
  if (factors.length > 0) map = heatMap();
  nameTheme();
  showFeatures();
  if (simplicity) { simplicity.value = simplicity.dataset.chosen; showStep(); }
})();
