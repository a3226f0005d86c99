"use strict";
// The page's only script: sorting, copying, opening what a link leads to, and the viewer of brain maps. It builds
// elements and text nodes, never HTML from strings, so that a label can say anything and do nothing.
(() => {
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // --- links lead into closed parts; paper shows all of them

  const openAround = element => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const followHash = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    openAround(target);
    if (target.tagName === "SECTION") target.querySelectorAll(":scope > details").forEach(part => { part.open = true; });
    target.scrollIntoView();
  };
  addEventListener("hashchange", followHash);
  document.addEventListener("click", event => {  // the same link once more
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) followHash();
  });
  let opened = [], printing = false;  // viewers stay closed on paper, static figures show the same
  addEventListener("beforeprint", () => {
    printing = true;
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach(part => { part.open = true; });
  });
  addEventListener("afterprint", () => {
    opened.forEach(part => { part.open = false; });
    printing = false;
  });

  // --- tables that sort

  const exact = cell => {
    const data = cell.querySelector("data");
    const said = data ? data.value : cell.textContent;
    const number = Number(said);
    return said.trim() === "" || Number.isNaN(number) ? said : number;
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : String(a).localeCompare(String(b), undefined, { numeric: true });
  const sortBy = (table, heading, column) => {
    const first = table.tBodies[0].rows[0];
    const numeric = first && typeof exact(first.cells[column]) === "number";
    const before = heading.getAttribute("aria-sort");
    const up = before ? before === "descending" : !numeric;  // numbers start with the largest
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map(row => [exact(row.cells[column]), row]);
    rows.sort((a, b) => up ? compare(a[0], b[0]) : compare(b[0], a[0]));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = make("button", { type: "button" }, ...heading.childNodes);
      button.addEventListener("click", () => sortBy(table, heading, column));
      heading.append(button);
    });
  }

  // --- text to copy

  const copy = async said => {
    try {
      await navigator.clipboard.writeText(said);
    } catch {  // not allowed here: the old way
      const area = make("textarea");
      area.value = said;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  for (const part of document.querySelectorAll("[data-copy]")) {
    const button = make("button", { type: "button", class: "copy" }, part.dataset.copy);
    button.addEventListener("click", async () => {
      await copy([...part.children].map(child => child.textContent).join("\n\n"));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = part.dataset.copy; }, 2000);
    });
    part.before(button);
  }

  // --- the viewer

  const PLANES = [["sagittal", 0, 1, 2], ["coronal", 1, 0, 2], ["axial", 2, 0, 1]];  // through, across, up
  const SIDES = [["L", "R"], ["P", "A"], ["I", "S"]];
  const FADED = 0.4, HEIGHT = 330;  // opacity of what was not selected; pixels of the tallest slice

  const volumeOf = async (address, [nx, ny, nz]) => {  // one byte per voxel, x fastest
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = make("canvas", { width: image.width, height: image.height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, image.width, image.height).data;
    const columns = image.width / nx, volume = new Uint8Array(nx * ny * nz);
    for (let z = 0; z < nz; z++) for (let y = 0; y < ny; y++) for (let x = 0; x < nx; x++) {
      const row = Math.floor(z / columns) * ny + y, column = (z % columns) * nx + x;
      volume[x + nx * (y + ny * z)] = pixels[4 * (row * image.width + column)];
    }
    return volume;
  };

  class Viewer {
    constructor(figure) {
      this.view = JSON.parse(figure.dataset.view);
      this.scales = JSON.parse(document.getElementById("scales").dataset.scales);
      this.at = [...this.view.at];
      this.volumes = {};
      this.build(figure);
      this.load();
    }

    async load() {
      const { view } = this;
      this.ground = await volumeOf(document.getElementById(view.ground).dataset.image, view.shape);
      this.selected = view.selected && await volumeOf(view.selected, view.shape);
      await this.choose(0);
    }

    controls(label) {
      const { view } = this;
      this.menu = make("select", {}, ...view.maps.map((map, i) => make("option", { value: i }, map.name)));
      this.menu.addEventListener("change", () => this.choose(Number(this.menu.value)));
      this.slider = make("input", { type: "range", min: 0, max: 100, step: 1 });
      this.slider.addEventListener("input", () => this.draw());
      this.level = make("output");
      this.readout = make("output", { class: "readout", "aria-live": "polite" });
      const peak = make("button", { type: "button" }, "Largest value");
      peak.addEventListener("click", () => this.go(this.peak));
      this.bar = make("canvas", { width: 256, height: 10, class: "bar", "aria-hidden": "true" });
      this.low = make("span"); this.high = make("span");
      return make("div", { class: "controls", role: "group", "aria-label": label },
        make("label", {}, "Map ", this.menu), make("label", {}, "Threshold ", this.slider), this.level, peak,
        make("span", { class: "scale" }, this.low, this.bar, this.high));
    }

    build(figure) {
      const { view } = this, controls = this.controls(figure.dataset.label);
      const planes = PLANES.filter(([, axis]) => !view.shape.includes(1) || view.shape[axis] === 1).slice(0, 3);
      this.panels = planes.map(plane => this.panel(plane));
      const tallest = Math.max(...planes.map(([, , , up]) => view.shape[up] * view.zooms[up]));
      const widest = planes.reduce((sum, [, , across]) => sum + view.shape[across] * view.zooms[across], 0);
      const room = `max-width: ${Math.round(HEIGHT * widest / tallest)}px`;
      const row = make("div", { class: "panels", style: room }, ...this.panels.map(panel => panel.box));
      this.help = make("figcaption");
      const stamp = [...figure.querySelectorAll(".stamp")];
      figure.classList.toggle("single", planes.length === 1);
      figure.replaceChildren(...stamp, controls, row, this.readout, this.help);
    }

    explain() {  // what the colours of this map mean
      const { positive, negative, selected } = this.view, { about, sign, signed, fades } = this.map;
      const colours = `Orange to red: ${sign} ${positive}; blue: ${sign} ${negative}` +
        `${fades && selected ? `; ${this.element(2)} that were not selected are faded` : ""}. `;
      this.help.textContent = `${about} ${signed ? colours : ""}${this.how()}`;
    }

    how() {
      const slices = this.panels.length > 1 ? ", Page Up and Page Down for the next slice" : "";
      return `Click or use the arrow keys to move${slices}. Neurological convention: the left hemisphere is on the left.`;
    }

    panel([name, axis, across, up]) {
      const { shape, zooms } = this.view;
      const width = shape[across] * zooms[across], height = shape[up] * zooms[up];
      const scale = 720 / Math.max(...shape.map((count, side) => count * zooms[side]));
      const canvas = make("canvas", { tabindex: 0, role: "img", width: Math.round(width * scale), height: Math.round(height * scale) });
      const sides = make("div", { class: "sides" }, ...SIDES[across].map(letter => make("span", {}, letter)));
      const panel = { name, axis, across, up, canvas, box: make("div", { style: `flex: ${width} 1 0` }, sides, canvas) };
      canvas.addEventListener("click", event => {
        const inside = canvas.getBoundingClientRect();
        const place = [...this.at];
        place[across] = Math.floor((event.clientX - inside.left) / inside.width * shape[across]);
        place[up] = shape[up] - 1 - Math.floor((event.clientY - inside.top) / inside.height * shape[up]);
        this.go(place);
      });
      canvas.addEventListener("keydown", event => {
        const step = { ArrowLeft: [across, -1], ArrowRight: [across, 1], ArrowUp: [up, 1], ArrowDown: [up, -1],
          PageUp: [axis, 1], PageDown: [axis, -1] }[event.key];
        if (!step) return;
        event.preventDefault();
        const place = [...this.at];
        place[step[0]] += step[1];
        this.go(place);
      });
      return panel;
    }

    go(place) {
      this.at = place.map((value, axis) => Math.min(this.view.shape[axis] - 1, Math.max(0, value)));
      this.draw();
    }

    async choose(index) {
      const map = this.view.maps[index];
      this.volumes[index] = this.volumes[index] || await volumeOf(map.image, this.view.shape);
      this.map = map;
      this.values = this.volumes[index];
      this.slider.value = map.start;
      let best = -1;
      const [nx, ny] = this.view.shape;
      this.values.forEach((value, i) => {
        const size = this.size(value);
        if (size > best) { best = size; this.peak = [i % nx, Math.floor(i / nx) % ny, Math.floor(i / (nx * ny))]; }
      });
      this.drawBar();
      this.explain();
      this.draw();
    }

    size(value) { return this.map.signed ? Math.abs(value - 128) / 127 : value / 255; }
    value(value) { return this.map.top * (this.map.signed ? (value - 128) / 127 : value / 255); }
    colour(value) { return this.scales[this.map.signed ? "weights" : "shares"][value]; }
    index([x, y, z]) { const [nx, ny] = this.view.shape; return x + nx * (y + ny * z); }

    draw() {
      const threshold = Number(this.slider.value) / 100;
      let shown = 0;
      for (const value of this.values) if (this.size(value) > 0 && this.size(value) >= threshold) shown++;
      const sign = this.map.signed ? `|${this.map.name}|` : this.map.name;
      this.level.textContent = `shown where ${sign} ≥ ${(threshold * this.map.top).toPrecision(2)}: ${shown.toLocaleString("en")} ${this.element(shown)}`;
      this.slider.setAttribute("aria-valuetext", this.level.textContent);
      for (const panel of this.panels) this.drawPanel(panel, threshold);
      this.describe();
    }

    drawPanel({ name, axis, across, up, canvas }, threshold) {
      const { shape } = this.view, nx = shape[across], ny = shape[up];
      const slice = new ImageData(nx, ny), place = [...this.at];
      for (let b = 0; b < ny; b++) for (let a = 0; a < nx; a++) {
        place[across] = a; place[up] = b;
        const i = this.index(place), o = 4 * ((ny - 1 - b) * nx + a), grey = this.ground[i], value = this.values[i];
        const over = this.size(value) > 0 && this.size(value) >= threshold;
        if (!grey && !over) continue;
        const faded = this.map.fades && this.selected && !this.selected[i];
        const share = over ? faded ? FADED : 1 : 0, colour = this.colour(value);
        for (let c = 0; c < 3; c++) slice.data[o + c] = share * colour[c] + (1 - share) * grey;
        slice.data[o + 3] = 255;
      }
      const small = make("canvas", { width: nx, height: ny });
      small.getContext("2d").putImageData(slice, 0, 0);
      const context = canvas.getContext("2d"), w = canvas.width, h = canvas.height;
      context.fillStyle = "#fff";
      context.fillRect(0, 0, w, h);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, 0, 0, w, h);
      this.drawCross(context, (this.at[across] + 0.5) / nx * w, (1 - (this.at[up] + 0.5) / ny) * h, w / nx, h / ny);
      canvas.setAttribute("aria-label", `${name} slice ${this.where(axis)}; arrow keys move`);
    }

    drawCross(context, x, y, dx, dy) {  // lines that leave the voxel and its neighbours free
      const { width: w, height: h } = context.canvas;
      context.strokeStyle = "#22282e99";
      context.lineWidth = 2;
      context.beginPath();
      for (const [a, b] of [[0, x - 1.5 * dx], [x + 1.5 * dx, w]]) { context.moveTo(a, y); context.lineTo(b, y); }
      for (const [a, b] of [[0, y - 1.5 * dy], [y + 1.5 * dy, h]]) { context.moveTo(x, a); context.lineTo(x, b); }
      context.stroke();
    }

    drawBar() {
      const context = this.bar.getContext("2d"), top = this.map.top === 1 ? "1" : this.map.top.toPrecision(2);
      for (let i = 0; i < 256; i++) {
        context.fillStyle = `rgb(${this.colour(i)})`;
        context.fillRect(i, 0, 1, 10);
      }
      this.low.textContent = this.map.signed ? `−${top}` : "0";
      this.high.textContent = this.map.signed ? `+${top}` : top;
    }

    millimetres(axis) {
      return this.view.affine[axis].reduce((sum, part, i) => sum + part * (i < 3 ? this.at[i] : 1), 0);
    }

    where(axis) { return `${"xyz"[axis]} = ${String(Math.round(this.millimetres(axis))).replace("-", "−")} mm`; }

    element(count) {
      const [one, more] = this.mesh ? ["vertex", "vertices"] : ["voxel", "voxels"];
      return count === 1 ? one : more;
    }

    said() {  // about the voxel or vertex
      const i = this.index(this.at), value = this.value(this.values[i]);
      const chosen = this.selected ? this.selected[i] ? ", selected" : ", not selected" : "";
      return `${this.map.name} ${value.toPrecision(2).replace("-", "−")}${chosen}`;
    }

    describe() {
      this.readout.textContent = `${[0, 1, 2].map(axis => this.where(axis)).join(", ")}: ${this.said()}`;
    }
  }

  const SurfaceViewer = surfaceViewer(Viewer, make, volumeOf);
  const start = figure => {
    if (figure.dataset.started || printing) return;
    figure.dataset.started = "yes";
    new (JSON.parse(figure.dataset.view).first ? SurfaceViewer : Viewer)(figure);
  };
  for (const figure of document.querySelectorAll("figure.viewer")) {
    const around = figure.closest("details");
    if (!around || around.open) start(figure);
    else around.addEventListener("toggle", () => { if (around.open) start(figure); });
  }
  if (location.hash) followHash();
})();
